"""Trains the recogniser of spoken digits and writes every file that the demo reads.

    python train.py            # about a quarter of an hour on one core

The net writes down, letter by letter, what a voice says: an encoder and a decoder like Whisper's (A. Radford et al.,
2023), a thousandth of its size. The encoder hears up to three seconds of sound: powers in 40 bands every 10 ms, two
convolutions that make one place of four, and two layers of attention. From its result it also makes, once, the keys
and values that the decoder's layers will look at. The decoder writes a letter a run; the keys and values of what it
has written are its state. The voices are made up by voice.py; it's a model of the size of its examples, and no human
voice has been tried on it.

Both models are written by torch.onnx.export.

Invariants that main.cpp relies on:
  * encoder.onnx: input "samples" float32 [1,N], 8 kHz, -1..1, N at least 800, at most 24000; outputs "key.L" and
    "value.L" float32 [1,4,P,16], two layers;
  * decoder.onnx: inputs "token" int64 [1,1] (line of vocabulary.txt), "place" int64 [1] (how many came before), these
    keys and values, and the caches "past_key.L" and "past_value.L"; outputs "logits" float32 [1,1,V], "present_key.L"
    and "present_value.L" float32 [1,4,T,16], T at most 39;
  * line 0 of vocabulary.txt stands for the beginning and for the end of a text;
  * spoken.wav is 8 kHz, mono, 16 bits: as many pieces of three seconds as onnxruntime.txt and spoken.txt have lines:
    what ONNX Runtime reads in each, and what was said.
"""

import time
import wave
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

from voice import DIGITS, RATE, join, word

HERE = Path(__file__).resolve().parent
SEED = 1
WIDTH, HEADS, SIZE, INNER, LAYERS = 64, 4, 16, 128, 2
FRAME, HOP, BANDS = 200, 80, 40
SECONDS, LONGEST, MOST_DIGITS = 3, 39, 6
STEPS, BATCH, LEARNING_RATE = 3000, 32, 2e-3
RENDERINGS = 250  # of each digit, to train on
STORED = 8

LETTERS = ["<end>"] + sorted({letter for digit in DIGITS for letter in digit + " "})


def encode(text):
    return [LETTERS.index(letter) for letter in text]


def bands():
    """[40,101]: triangles over the powers at 0 to 4000 Hz, evenly spaced as one hears (S. Stevens et al., 1937)."""
    def mel(hertz):
        return 1127 * np.log1p(hertz / 700)

    edges = 700 * np.expm1(np.linspace(mel(60), mel(3900), BANDS + 2) / 1127)
    hertz = np.arange(FRAME // 2 + 1) * RATE / FRAME
    up = (hertz - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - hertz) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


class Ear(nn.Module):
    """Samples [N,S] -> logarithms of powers [N,40,T], by the Fourier transform as a convolution."""

    def __init__(self):
        super().__init__()
        angles = 2 * np.pi * np.outer(np.arange(FRAME // 2 + 1), np.arange(FRAME)) / FRAME
        waves = np.concatenate([np.cos(angles), np.sin(angles)]) * np.hanning(FRAME)
        self.register_buffer("waves", torch.from_numpy(waves.astype(np.float32))[:, None])
        self.register_buffer("bands", torch.from_numpy(bands())[:, :, None])

    def forward(self, samples):
        parts = F.conv1d(samples[:, None], self.waves, stride=HOP)
        real, imaginary = parts.chunk(2, 1)
        powers = F.conv1d(real * real + imaginary * imaginary, self.bands)
        return torch.log(powers + 1e-5) * 0.25 + 1


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.o = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, key, value, causal=False):
        y = F.scaled_dot_product_attention(heads(self.q(x)), key, value, is_causal=causal)
        return self.o(y.transpose(1, 2).flatten(2))


class Memory(nn.Module):
    """Keys and values [N,4,T,16] of what attention may look at."""

    def __init__(self):
        super().__init__()
        self.k, self.v = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return heads(self.k(x)), heads(self.v(x))


def heads(x):
    return x.unflatten(2, (HEADS, SIZE)).transpose(1, 2)


def dense():
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.memory, self.attention, self.dense = nn.LayerNorm(WIDTH), Memory(), Attention(), dense()

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, *self.memory(y))
        return x + self.dense(x)


class Encoder(nn.Module):
    """Samples [N,S] -> a key and a value [N,4,P,16] for each layer of the decoder."""

    def __init__(self):
        super().__init__()
        self.ear = Ear()
        self.first = nn.Conv1d(BANDS, WIDTH, 3, stride=2, padding=1)
        self.second = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.places = nn.Parameter(0.02 * torch.randn(SECONDS * 25, WIDTH))
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.memories = nn.ModuleList(Memory() for _ in range(LAYERS))

    def forward(self, samples):
        x = F.gelu(self.second(F.gelu(self.first(self.ear(samples))))).transpose(1, 2)
        x = x + self.places[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return [part for memory in self.memories for part in memory(x)]


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.memory, self.itself = nn.LayerNorm(WIDTH), Memory(), Attention()
        self.between, self.across, self.dense = nn.LayerNorm(WIDTH), Attention(), dense()

    def forward(self, x, heard, past=None):
        """`past`: what the layer has of the letters before; without it, x are all letters."""
        y = self.before(x)
        now = self.memory(y)
        if past is not None:
            now = [torch.cat(pair, 2) for pair in zip(past, now)]
        x = x + self.itself(y, *now, causal=past is None)
        x = x + self.across(self.between(x), *heard)
        return x + self.dense(x), now


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(LONGEST, WIDTH))
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))
        self.last = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS)))

    def forward(self, token, place, heard, past=None):
        """Logits, and the caches; `heard` and `past`: key, value of the first layer, of the second, and so on."""
        x, present = self.letters(token) + self.places[place], []
        for k, layer in enumerate(self.layers):
            x, now = layer(x, heard[2 * k : 2 * k + 2], None if past is None else past[2 * k : 2 * k + 2])
            present += now
        return self.last(x), present


def recording(random, words, count):
    """Samples float32 [count], and the text."""
    while True:
        digits = random.integers(10, size=random.integers(1, MOST_DIGITS + 1))
        voice = random.integers(len(words))
        samples = join(random, [words[voice][d][random.integers(len(words[voice][d]))] for d in digits], count)
        if samples is not None:
            return samples, " ".join(DIGITS[d] for d in digits)


def voices(random, count, each):
    """Some voices, each with `each` renderings of each digit."""
    made = []
    for _ in range(count):
        pitch, throat = random.uniform(85, 240), random.uniform(0.88, 1.15)
        made.append([[word(random, d, pitch * random.uniform(0.9, 1.1), throat) for _ in range(each)] for d in range(10)])
    return made


def train(random):
    encoder, decoder = Encoder(), Decoder()
    words = voices(random, RENDERINGS // 5, 5)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.AdamW(parameters, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=STEPS, pct_start=0.1)
    losses, start = [], time.time()
    for step in range(STEPS):
        count = int(random.uniform(1.2, SECONDS) * RATE)
        samples, texts = zip(*(recording(random, words, count) for _ in range(BATCH)))
        tokens = torch.full((BATCH, max(map(len, texts)) + 2), -1)
        for row, text in zip(tokens, texts):
            row[: len(text) + 2] = torch.tensor([0, *encode(text), 0])
        asked = tokens[:, :-1]
        logits, _ = decoder(asked.clamp(min=0), torch.arange(asked.shape[1]), encoder(torch.from_numpy(np.stack(samples))))
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 99:
            print(f"step {step + 1:4d}  loss {np.mean(losses[-100:]):.4f}  {time.time() - start:4.0f} s", flush=True)
    return encoder.eval(), decoder.eval()


class Step(nn.Module):
    """The decoder as it is exported: named inputs instead of lists."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, token, place, heard, past):
        logits, present = self.decoder(token, place, heard, past)
        return logits, *present


def export(encoder, decoder):
    parts = [f"{part}.{layer}" for layer in range(LAYERS) for part in ("key", "value")]
    options = {"dynamo": True, "opset_version": 20, "external_data": False, "verbose": False}
    torch.onnx.export(encoder, (torch.zeros(1, 2 * RATE),), HERE / "encoder.onnx", input_names=["samples"],
                      output_names=parts, dynamic_shapes=({1: torch.export.Dim("N", min=800, max=SECONDS * RATE)},),
                      **options)
    heard = [torch.zeros(1, HEADS, 50, SIZE) for _ in parts]
    past = [torch.zeros(1, HEADS, 5, SIZE) for _ in parts]
    torch.onnx.export(
        Step(decoder), (torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), heard, past),
        HERE / "decoder.onnx", input_names=["token", "place", *parts, *("past_" + part for part in parts)],
        output_names=["logits", *("present_" + part for part in parts)],
        dynamic_shapes=(None, None, [{2: torch.export.Dim("P", max=SECONDS * 25)} for _ in parts],
                        [{2: torch.export.Dim("T", max=LONGEST - 1)} for _ in parts]), **options)
    for name in ("encoder", "decoder"):  # without what the exporter tells about itself
        model = onnx.load(HERE / f"{name}.onnx")
        model.graph.ClearField("value_info")
        for node in model.graph.node:
            node.ClearField("metadata_props")
            node.ClearField("doc_string")
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, HERE / f"{name}.onnx")


class Recogniser:
    """Both models by ONNX Runtime."""

    def __init__(self):
        self.encoder, self.decoder = (onnxruntime.InferenceSession(HERE / f"{name}.onnx", providers=["CPUExecutionProvider"])
                                      for name in ("encoder", "decoder"))
        self.margin = np.inf  # the least that a letter had before the second likeliest

    def read(self, samples):
        names = [output.name for output in self.encoder.get_outputs()]
        heard = dict(zip(names, self.encoder.run(None, {"samples": samples[None]})))
        caches = {"past_" + name: np.zeros((1, HEADS, 0, SIZE), np.float32) for name in names}
        token, text = 0, ""
        for place in range(LONGEST):
            inputs = {"token": np.array([[token]]), "place": np.array([place]), **heard, **caches}
            logits, *present = self.decoder.run(None, inputs)
            caches = dict(zip(caches, present))
            token = int(logits[0, 0].argmax())
            second, first = np.sort(logits[0, 0])[-2:]
            self.margin = min(self.margin, first - second)
            if token == 0:
                break
            text += LETTERS[token]
        return text


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)
    encoder, decoder = train(np.random.default_rng(SEED))
    export(encoder, decoder)
    (HERE / "vocabulary.txt").write_text("\n".join(LETTERS) + "\n")

    recogniser, random = Recogniser(), np.random.default_rng(SEED + 1)
    words, count = voices(random, 40, 2), SECONDS * RATE
    made = [recording(random, words, count) for _ in range(300)]
    read = [recogniser.read(samples) for samples, _ in made]
    right = sum(text == said for text, (_, said) in zip(read, made))
    print(f"voices that were not trained on: {right} of {len(made)} recordings right")
    print(*(f"    {said} -> {text}" for text, (_, said) in zip(read, made) if text != said), sep="\n")

    # Stored as 16 bits, and read as such.
    stored = [(np.round(samples * 32767).astype("<i2"), said) for samples, said in
              (recording(random, words, count) for _ in range(STORED))]
    with wave.open(str(HERE / "spoken.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(b"".join(samples.tobytes() for samples, _ in stored))
    recogniser.margin = np.inf
    read = [recogniser.read(samples.astype(np.float32) / np.float32(32768)) for samples, _ in stored]
    (HERE / "onnxruntime.txt").write_text("\n".join(read) + "\n")
    (HERE / "spoken.txt").write_text("\n".join(said for _, said in stored) + "\n")
    print(f"stored: {sum(text == said for text, (_, said) in zip(read, stored))} of {STORED} right, "
          f"least margin {recogniser.margin:.2f}")


if __name__ == "__main__":
    main()
