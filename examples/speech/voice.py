"""A voice that says digits, made from nothing: harmonics of a moving pitch, as loud as formants have them, and noise.

Each digit is a row of sounds, each sound a place of the first three formants, how loud it is voiced, how loud it is
noise, and where in the spectrum that noise lies. What is between two sounds is between their values.
"""

import numpy as np

RATE = 8000
DIGITS = "zero one two three four five six seven eight nine".split()

# formants in Hz, how loud voiced, how loud noise, the middle and the width of the noise in Hz, seconds
SOUNDS = {
    "IY": ((270, 2290, 3010), 1.0, 0, 3000, 500, 0.12), "IH": ((390, 1990, 2550), 1.0, 0, 3000, 500, 0.08),
    "EH": ((530, 1840, 2480), 1.0, 0, 3000, 500, 0.09), "AA": ((730, 1090, 2440), 1.0, 0, 3000, 500, 0.10),
    "AH": ((640, 1190, 2390), 1.0, 0, 3000, 500, 0.09), "AO": ((570, 840, 2410), 1.0, 0, 3000, 500, 0.11),
    "UW": ((300, 870, 2240), 0.9, 0, 3000, 500, 0.12), "R": ((330, 1060, 1380), 0.7, 0, 3000, 500, 0.06),
    "W": ((290, 610, 2150), 0.6, 0, 3000, 500, 0.05), "N": ((250, 1500, 2500), 0.35, 0, 3000, 500, 0.07),
    "V": ((280, 1100, 2200), 0.25, 0.08, 2500, 1200, 0.05), "Z": ((270, 1700, 2600), 0.25, 0.25, 3500, 500, 0.07),
    "S": ((300, 1700, 2600), 0, 0.45, 3500, 500, 0.11), "F": ((300, 1100, 2200), 0, 0.15, 2500, 1500, 0.09),
    "TH": ((300, 1400, 2500), 0, 0.12, 3000, 900, 0.08), "-": ((400, 1500, 2500), 0, 0, 3000, 500, 0.04),
    "T": ((300, 1700, 2600), 0, 0.5, 3200, 700, 0.025), "K": ((300, 1900, 2400), 0, 0.5, 1900, 400, 0.03),
}
SAID = {"zero": "Z IH R AO UW", "one": "W AH N", "two": "- T UW", "three": "TH R IY", "four": "F AO R",
        "five": "F AA IH V", "six": "S IH - K S", "seven": "S EH V AH N", "eight": "EH IY - T", "nine": "N AA IH N"}


def word(random, digit, pitch, throat):
    """Float64 [samples]: one digit, by a voice of so many Hz and so short a throat (1: as the table has it)."""
    sounds = [SOUNDS[name] for name in SAID[DIGITS[digit]].split()]
    lengths = [seconds * random.uniform(0.75, 1.35) for *_, seconds in sounds]
    begins = np.concatenate([[0], np.cumsum(lengths)])
    time = np.arange(int(begins[-1] * RATE)) / RATE
    # Each sound holds its value in the middle half of its time; stops are short, and hold it longer.
    knots = np.concatenate([[b + 0.25 * l, b + 0.75 * l] for b, l in zip(begins, lengths)])

    def track(values):
        return np.interp(time, knots, np.repeat(values, 2))

    voiced, hissed = track([s[1] for s in sounds]), track([s[2] for s in sounds])
    formants = [track([s[0][k] for s in sounds]) * throat * random.uniform(0.96, 1.04) for k in range(3)]
    tone = pitch * (1 + random.uniform(-0.15, 0.15) * np.linspace(-1, 1, len(time)) +
                    0.01 * np.sin(2 * np.pi * random.uniform(3, 6) * time))
    phase = 2 * np.pi * np.cumsum(tone) / RATE
    harmonic = np.arange(1, int(3800 / tone.max()))[:, None]
    loud = sum(gain / (1 + ((harmonic * tone - formant) / width) ** 2)
               for formant, gain, width in zip(formants, (1, 0.6, 0.3), (80, 110, 160)))
    sound = voiced * (loud * np.sin(harmonic * phase)).sum(0)
    middle, width = (random.uniform(0.95, 1.05) * track([s[k] for s in sounds]) for k in (3, 4))
    # Noise in a moving band: low noise, shifted to the middle of the band.
    low = np.convolve(random.normal(0, 1, len(time) + 8), np.ones(9) / 3, "valid")
    high = random.normal(0, 1, len(time))
    narrow = width / 2000
    shifted = ((1 - narrow) * low + narrow * high) * np.cos(2 * np.pi * np.cumsum(middle) / RATE)
    sound = sound + 1.5 * hissed * shifted
    edges = np.minimum(1, np.minimum(time, time[::-1]) / 0.008)
    return sound * edges


def join(random, words, count):
    """Float32 [count] in -1..1: words with pauses between them, a little noise under all. None if it gets too long."""
    sound, at = np.zeros(count), int(random.uniform(0.05, 0.25) * RATE)
    for part in words:
        if at + len(part) + RATE // 20 > count:
            return None
        sound[at : at + len(part)] += part
        at += len(part) + int(random.uniform(0.02, 0.15) * RATE)
    power = np.mean(sound**2) + 1e-9
    sound += random.normal(0, 1, count) * np.sqrt(power * 10 ** (-random.uniform(1.0, 3.0)))
    return (sound * random.uniform(0.1, 0.9) / np.abs(sound).max()).astype(np.float32)
