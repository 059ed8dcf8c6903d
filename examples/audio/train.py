"""Trains the noise suppressor and writes every file that the demo reads.

    python train.py            # about a minute on one core

The net hears a recording as it comes, 10 ms at a time, and remembers what it needs in a state that the caller hands
back with the next frame: it can run for ever on a stream. A frame is 320 samples at 16 kHz, half of them old. The
graph windows it, takes its spectrum, lets two gated recurrent layers decide how much of each of the 161 frequencies
is voice, and returns to samples, which the caller only has to add to the half that overlaps (J.-M. Valin, "A hybrid
DSP/deep learning approach to real-time full-band speech enhancement", 2018, is a net of this kind that is used).

Nobody speaks in these recordings: voice() synthesises syllables, a glottal tone with moving formants, and hissing
consonants between them; noise() shapes random noise like fans, rain, hum and rumble. All random numbers are seeded.
What is stored, and the 40 recordings of which the figures are taken, come from other seeds than the training's.

Invariants that main.cpp relies on:
  * inputs "frame" float32 [1,320], samples in -1..1, and "state" float32 [2,1,96], zero at the start of a stream;
  * outputs "cleaned" float32 [1,320], to be overlapped by half and added, and "next_state" float32 [2,1,96];
  * NAME_noisy.wav, NAME_clean.wav and NAME_onnxruntime.wav are 16 kHz, mono, 16 bits: what the net hears, what was
    said, and the first cleaned frame by frame by ONNX Runtime. Sample 0 is the middle of the first frame, whose older
    half is silence, so that input and output lie at the same places.
"""

import wave
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 1
RATE, FRAME, HOP = 16000, 320, 160
BINS, UNITS, LAYERS = FRAME // 2 + 1, 96, 2
STEPS, BATCH = 450, 16
PIECES, PIECE = 400, RATE  # of each, voices and noises to train on, and their length
STORED = {"fan": ("fan", 3.0), "rain": ("rain", 6.0)}  # kind of noise, and dB of voice over noise

# The square root of a Hann window, once before the spectrum and once after: squared and overlapped they sum to 1.
WINDOW = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)

# What precedes and follows the trained layers, in ONNX's text form. DFT is the Fourier transform; of a real signal it
# gives frequencies 0 to 160, and frequencies 161 to 319 are the conjugates of 159 to 1.
SPECTRUM = """
<ir_version: 8, opset_import: ["": 17]>
spectrum (float[1,320] frame) => (float[1,161,2] heard, float[1,1,161] level)
  <int64[3] signal_shape = {1,320,1}, int64[1] last_axis = {-1}, int64[3] level_shape = {1,1,161},
   float least = {1e-6}>
{
  window = Constant <value = float[1,320] {WINDOW}> ()
  windowed = Mul (frame, window)
  signal = Reshape (windowed, signal_shape)
  heard = DFT <axis = 1, onesided = 1> (signal)
  squares = Mul (heard, heard)
  power = ReduceSum <keepdims = 0> (squares, last_axis)
  floored = Add (power, least)
  logarithm = Log (floored)
  level = Reshape (logarithm, level_shape)
}
"""
SAMPLES = """
<ir_version: 8, opset_import: ["": 17]>
samples (float[1,161,2] spectrum, float[1,1,161] gain) => (float[1,320] cleaned)
  <int64[3] gain_shape = {1,161,1}, int64[1] from = {159}, int64[1] to = {0}, int64[1] axis = {1},
   int64[1] backwards = {-1}, int64[1] real = {0}, int64[1] after_real = {1}, int64[1] parts = {2},
   int64[2] frame_shape = {1,320}, float[1,1,2] conjugate = {1,-1}>
{
  gains = Reshape (gain, gain_shape)
  voice = Mul (spectrum, gains)
  mirrored = Slice (voice, from, to, axis, backwards)
  conjugated = Mul (mirrored, conjugate)
  whole = Concat <axis = 1> (voice, conjugated)
  complex_signal = DFT <axis = 1, inverse = 1> (whole)
  real_signal = Slice (complex_signal, real, after_real, parts)
  signal = Reshape (real_signal, frame_shape)
  window = Constant <value = float[1,320] {WINDOW}> ()
  cleaned = Mul (signal, window)
}
"""


class Suppressor(nn.Module):
    """Log powers [T,N,161] and state [2,N,96] -> gains [T,N,161] in 0..1 and the next state."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(BINS, 64)
        self.recur = nn.GRU(64, UNITS, LAYERS)
        self.decode = nn.Linear(UNITS, BINS)

    def forward(self, level, state):
        features = torch.relu(self.encode(level * 0.2 + 1))
        features, state = self.recur(features, state)
        return torch.sigmoid(self.decode(features)), state


# First three formants of some vowels, in Hz.
VOWELS = np.array([[730, 1090, 2440], [270, 2290, 3010], [300, 870, 2240], [530, 1840, 2480], [570, 840, 2410],
                   [660, 1720, 2410], [440, 1020, 2240], [490, 1350, 1690]], float)


def syllable(random, pitch, count):
    """A vowel gliding into another, count samples: harmonics of a moving pitch, each as loud as the formants are at
    its frequency."""
    along = np.linspace(0, 1, count)
    tone = pitch * (1 + random.uniform(-0.2, 0.2) * along + 0.01 * np.sin(2 * np.pi * 5 * along))
    phase = 2 * np.pi * np.cumsum(tone) / RATE
    first, second = (VOWELS[random.integers(len(VOWELS))] * random.uniform(0.85, 1.15) for _ in range(2))
    formants = first[:, None] + (second - first)[:, None] * along
    sound = np.zeros(count)
    for k in range(1, int(5000 / tone.max())):
        loud = sum(gain / (1 + ((k * tone - formant) / width) ** 2)
                   for formant, gain, width in zip(formants, (1, 0.6, 0.3), (80, 110, 160)))
        sound += loud * np.sin(k * phase)
    return sound * np.sin(np.pi * along) ** random.uniform(0.3, 0.8)


def hiss(random, count):
    """A consonant like s, f or sh: noise within a band."""
    spectrum = np.fft.rfft(random.normal(0, 1, count))
    frequency = np.fft.rfftfreq(count, 1 / RATE)
    middle, width = random.uniform(2500, 6500), random.uniform(600, 1800)
    band = np.exp(-(((frequency - middle) / width) ** 2))
    return np.fft.irfft(spectrum * band, count) * np.hanning(count)


def voice(random, count):
    """Syllables and pauses, [count] samples with a mean square of 1 where something is said."""
    sound, at = np.zeros(count), int(random.uniform(0, 0.3) * RATE)
    pitch = random.uniform(90, 240)
    while at < count:
        length = int(random.uniform(0.12, 0.35) * RATE)
        loudness = random.uniform(0.5, 1)
        if random.random() < 0.4:
            consonant = hiss(random, int(random.uniform(0.06, 0.14) * RATE))
            part = 0.5 * loudness * consonant / consonant.std()
            sound[at : at + len(part)] += part[: count - at]
            at += int(0.8 * len(part))
        part = syllable(random, pitch * random.uniform(0.85, 1.2), length)
        part *= loudness / part.std()
        sound[at : at + length] += part[: max(0, count - at)]
        at += int(length * random.uniform(0.8, 1.0))
        if random.random() < 0.2:
            at += int(random.uniform(0.1, 0.4) * RATE)
    return sound / np.sqrt(np.mean(sound[np.abs(sound) > 1e-3] ** 2))


def noise(random, count, kind=None):
    """[count] samples with a mean square of 1."""
    kind = kind or random.choice(["fan", "rain", "hum", "rumble", "any"])
    frequency = np.maximum(np.fft.rfftfreq(count, 1 / RATE), 20)
    shape = np.ones_like(frequency)
    if kind == "fan":
        shape = (frequency / 300) ** -random.uniform(0.4, 0.8)
    elif kind == "rumble":
        shape = 1 / (1 + (frequency / random.uniform(100, 400)) ** 2)
    elif kind == "any":
        knots = random.normal(0, 1.2, 8)
        shape = np.exp(np.interp(frequency, np.linspace(0, RATE / 2, 8), knots))
    sound = np.fft.irfft(np.fft.rfft(random.normal(0, 1, count)) * shape, count)
    sound /= sound.std()
    time = np.arange(count) / RATE
    if kind == "fan":  # blades
        sound *= 1 + random.uniform(0.1, 0.5) * np.sin(2 * np.pi * random.uniform(3, 25) * time)
    elif kind == "rain":  # drops
        drops = (random.random(count) < 100 / RATE) * random.exponential(6, count)
        sound += np.convolve(drops, np.exp(-np.arange(80) / 15.0) * random.normal(0, 1, 80))[:count]
    elif kind == "hum":
        base = random.uniform(48, 62)
        sound = 0.3 * sound + sum(random.uniform(0, 1) / k * np.sin(2 * np.pi * base * k * time) for k in range(1, 9))
    return sound / sound.std()


def mix(clean, noise, decibels, random):
    """A voice and what the microphone hears, both float [samples] in -1..1."""
    heard = clean + noise * 10 ** (-decibels / 20)
    loudness = random.uniform(0.05, 0.8) / np.abs(heard).max()
    return clean * loudness, heard * loudness


def spectra(sounds):
    """[N,samples] -> [T,N,161] complex: windowed frames, as SPECTRUM computes them."""
    frames = torch.nn.functional.pad(sounds, (HOP, HOP)).unfold(1, FRAME, HOP)
    return torch.fft.rfft(frames * torch.from_numpy(WINDOW)).transpose(0, 1)


def train(random):
    net = Suppressor()
    voices = [voice(random, PIECE) for _ in range(PIECES)]
    noises = [noise(random, PIECE) for _ in range(PIECES)]
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=STEPS)
    for step in range(STEPS):
        pairs = np.float32([mix(voices[random.integers(PIECES)],
                                np.roll(noises[random.integers(PIECES)], random.integers(PIECE)),
                                random.uniform(-5, 15), random) for _ in range(BATCH)])
        clean, heard = spectra(torch.from_numpy(pairs[:, 0])), spectra(torch.from_numpy(pairs[:, 1]))
        gain, _ = net(torch.log(heard.abs() ** 2 + 1e-6), torch.zeros(LAYERS, BATCH, UNITS))
        wrong = ((gain * heard - clean).abs() ** 2).sum((0, 2)) / (clean.abs() ** 2).sum((0, 2))
        quiet = ((gain * heard.abs() + 1e-4) ** 0.4 - (clean.abs() + 1e-4) ** 0.4) ** 2
        loss = torch.log10(wrong).mean() + 2 * quiet.mean()  # the noise in dB, and what remains in pauses
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            print(f"step {step + 1:3d}  noise {10 * torch.log10(wrong).mean():6.2f} dB")
    return net.eval()


def fragment(text):
    return onnx.parser.parse_model(text.replace("WINDOW", ",".join(f"{w:.9g}" for w in WINDOW)))


def export(net, path):
    """Writes opset 17: SPECTRUM, what torch exports, SAMPLES."""
    torch.onnx.export(net, (torch.zeros(1, 1, BINS), torch.zeros(LAYERS, 1, UNITS)), path, opset_version=17,
                      dynamo=False, input_names=["level", "state"], output_names=["gain", "next_state"])
    layers, before, after = onnx.load(path), fragment(SPECTRUM), fragment(SAMPLES)
    before.ir_version = after.ir_version = layers.ir_version
    before, after = (onnx.compose.add_prefix(model, prefix, rename_inputs=False, rename_outputs=False)
                     for model, prefix in ((before, "before_"), (after, "after_")))
    model = onnx.compose.merge_models(before, layers, io_map=[("level", "level")],
                                      outputs=["heard", "gain", "next_state"])
    model = onnx.compose.merge_models(model, after, io_map=[("heard", "spectrum"), ("gain", "gain")],
                                      outputs=["cleaned", "next_state"])
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def clean_by(session, samples):
    """Frame by frame, as main.cpp does it: float32 [samples], a multiple of HOP."""
    padded = np.concatenate([np.zeros(HOP, np.float32), samples, np.zeros(HOP, np.float32)])
    cleaned = np.zeros_like(padded)
    state = np.zeros((LAYERS, 1, UNITS), np.float32)
    for at in range(0, len(padded) - HOP, HOP):
        frame, state = session.run(["cleaned", "next_state"],
                                   {"frame": padded[None, at : at + FRAME], "state": state})
        cleaned[at : at + FRAME] += frame[0]
    return cleaned[HOP:-HOP]


def decibels(clean, other):
    """How much louder the voice is than what differs from it."""
    return 10 * np.log10(np.sum(clean**2) / np.sum((other - clean) ** 2))


def write_wav(path, samples):
    """Returns what a reader will see: rounded to 16 bits, again in -1..1."""
    rounded = np.clip(np.round(samples * 32768), -32768, 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(rounded.tobytes())
    return rounded.astype(np.float32) / np.float32(32768)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)

    net = train(np.random.default_rng(SEED))
    export(net, HERE / "denoise.onnx")
    session = onnxruntime.InferenceSession(HERE / "denoise.onnx", providers=["CPUExecutionProvider"])

    random, gains = np.random.default_rng(SEED + 1), []
    for _ in range(40):
        clean, heard = (
            sound.astype(np.float32)
            for sound in mix(voice(random, 2 * RATE), noise(random, 2 * RATE), random.uniform(-5, 15), random))
        gains.append((decibels(clean, heard), decibels(clean, clean_by(session, heard))))
    before, after = np.array(gains).T
    print(f"held out: {before.mean():.1f} dB before, {after.mean():.1f} dB after; "
          f"better by {(after - before).min():.1f} to {(after - before).max():.1f} dB")

    random = np.random.default_rng(SEED + 2)
    for name, (kind, level) in STORED.items():
        clean, heard = mix(voice(random, 2 * RATE), noise(random, 2 * RATE, kind), level, random)
        clean, heard = write_wav(HERE / f"{name}_clean.wav", clean), write_wav(HERE / f"{name}_noisy.wav", heard)
        cleaned = write_wav(HERE / f"{name}_onnxruntime.wav", clean_by(session, heard))
        print(f"{name:6s} {decibels(clean, heard):.1f} dB before, {decibels(clean, cleaned):.1f} dB after")


if __name__ == "__main__":
    main()
