"""Writes the pictures that the demo reads, and what ONNX Runtime finds and reads in them.

    python make.py             # seconds; needs numpy, Pillow and onnxruntime

The nets are those of ../detection and ../digits. A picture is ../detection/empty.png with signs drawn over it: a disc or
a square with a digit of ../digits/heldout.png, which the net for digits wasn't trained on.

Invariants that main.cpp relies on:
  * what lies between the nets: of each box, the 16x16 pixels around its middle, moved inside the picture; of each pixel
    the least of its three colours, the mean of 2x2 of them, and from the least to the greatest 0 to 1;
  * line k of NAME_onnxruntime.txt is detection k: "class left top right bottom digit probability".
"""

from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
DETECTION, DIGITS = HERE.parent / "detection", HERE.parent / "digits"
PICTURES = {"street": 6, "corner": 7}  # name and seed
SIDE, CROP, CELL = 128, 16, 8
COLOURS = [(150, 20, 20), (20, 60, 170), (20, 110, 30), (110, 20, 130)]
INK = 0.7  # of white, where a digit is darkest


def draw(seed, count=4):
    """A picture, and the (x, y, digit) that were drawn."""
    random = np.random.default_rng(seed)
    sheet = np.asarray(Image.open(DIGITS / "heldout.png"))
    labels = [int(line) for line in (DIGITS / "labels.txt").read_text().split()]
    picture = Image.open(DETECTION / "empty.png").convert("RGB")
    signs = []
    for x, y in random.integers(22, SIDE - 22, (80, 2)):
        if len(signs) == count or any(max(abs(x - a), abs(y - b)) <= 44 for a, b, _ in signs):
            continue
        k, half = int(random.integers(len(labels))), 18
        shape = ImageDraw.Draw(picture)
        corners = [x - half, y - half, x + half - 1, y + half - 1]
        (shape.rectangle if len(signs) % 2 else shape.ellipse)(corners, fill=COLOURS[len(signs)])
        digit = sheet[k // 20 * CELL :, k % 20 * CELL :][:CELL, :CELL] / 240 * INK
        ink = np.kron(digit, np.ones((2, 2)))[..., None]
        pixels = np.array(picture)
        there = pixels[y - 8 : y + 8, x - 8 : x + 8]
        there[:] = (there * (1 - ink) + 255 * ink).round()
        picture = Image.fromarray(pixels)
        signs.append((int(x), int(y), labels[k]))
    return np.asarray(picture), signs


def crop(pixels, box):
    """What the second net is given of a box."""
    corner = []
    for low, high in ((box[0], box[2]), (box[1], box[3])):
        middle = float(low + high) / 2 + 0.5
        assert 0.05 < middle % 1 < 0.95, "rounding would decide where the crop lies"
        corner.append(min(max(int(np.floor(middle)) - CROP // 2, 0), SIDE - CROP))
    x, y = corner
    least = pixels[y : y + CROP, x : x + CROP].min(axis=2).astype(np.float32)
    cells = least.reshape(CELL, 2, CELL, 2).mean(axis=(1, 3), dtype=np.float32)
    low, high = cells.min(), cells.max()
    return (cells - low) / max(high - low, np.float32(1))


def main():
    find = onnxruntime.InferenceSession(str(DETECTION / "detection.onnx"))
    read = onnxruntime.InferenceSession(str(DIGITS / "digits.onnx"))
    for name, seed in PICTURES.items():
        pixels, signs = draw(seed)
        Image.fromarray(pixels).save(HERE / f"{name}.png", optimize=True)
        image = (pixels.transpose(2, 0, 1)[None] / np.float32(255)).astype(np.float32)
        boxes, _, classes, _ = find.run(None, {"image": image})
        crops = np.stack([crop(pixels, box) for box in boxes])[:, None]
        logits = read.run(None, {"image": crops})[0]
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        with open(HERE / f"{name}_onnxruntime.txt", "w", encoding="ascii") as file:
            for kind, box, chance in zip(classes, boxes, chances):
                numbers = " ".join(f"{v:.4f}" for v in box)
                file.write(f"{kind} {numbers} {chance.argmax()} {chance.max():.5f}\n")
        found = [(round(float(b[0] + b[2]) / 2), round(float(b[1] + b[3]) / 2), int(c.argmax())) for b, c in zip(boxes, chances)]
        print(f"{name}: drawn {signs}, found {found}")


if __name__ == "__main__":
    main()
