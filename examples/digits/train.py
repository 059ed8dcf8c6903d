"""Trains the digits net and writes every file that the demo reads.

    python train.py            # about 15 seconds on one core

The 1,797 handwritten digits that ship inside scikit-learn are 8x8 pixels of 0..16, by 13 writers, seemingly one
after the other. The last 360 are held out as a block, so that most of their hands are new to the net: harder, and
more honest, than a shuffled split. Nothing is tuned on them: the
number of epochs is fixed, and the last state of the net is the one that is exported.

Invariants that main.cpp relies on:
  * the net's input is "image" float32 [N,1,8,8] in 0..1 (pixel / 16), its output "logits" float32 [N,10];
  * heldout.png holds digit k at row k / 20, column k % 20, its values are pixel * 15, so that value / 240 is
    exactly the number that the net was given here (pixel / 16 is exact in float32);
  * line k of labels.txt and of onnxruntime_predictions.txt belongs to digit k.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 1
TRAINED_ON, HELD_OUT = 1437, 360
EPOCHS, BATCH = 40, 32
COLUMNS = 20


class Digits(nn.Module):
    """[N,1,8,8] in 0..1 -> logits [N,10]. The layers' names become the names of the ONNX nodes."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.pool1 = nn.MaxPool2d(2)
        self.conv3, self.bn3 = nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)
        self.pool2 = nn.MaxPool2d(2)
        self.fc1, self.fc2 = nn.Linear(64 * 2 * 2, 64), nn.Linear(64, 10)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.pool1(self.relu(self.bn2(self.conv2(x))))
        x = self.pool2(self.relu(self.bn3(self.conv3(x))))
        x = self.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(self.dropout(x))


def shifted(batch):
    """Every digit moved by -1, 0 or 1 pixel each way: the only augmentation."""
    moved = torch.empty_like(batch)
    padded = nn.functional.pad(batch, (1, 1, 1, 1))
    for k, (dy, dx) in enumerate(torch.randint(0, 3, (len(batch), 2)).tolist()):
        moved[k] = padded[k, :, dy : dy + 8, dx : dx + 8]
    return moved


def train(images, labels):
    net = Digits()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.05)
    net.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(images)).split(BATCH):
            loss = loss_of(net(shifted(images[rows])), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:2d}  loss {total / len(images):.4f}")
    return net.eval()


def export(net, path):
    """Writes opset 17 with N free. PRESERVE keeps each BatchNormalization a node of its own, as trained nets often
    arrive: folding it into the convolution before it is the compiler's work, not the exporter's."""
    torch.onnx.export(
        net,
        (torch.zeros(2, 1, 8, 8),),
        path,
        opset_version=17,
        dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}},
    )
    onnx.checker.check_model(onnx.load(path), full_check=True)


def write_pictures(pixels, labels):
    """The held-out digits as one contact sheet, and the first of each class as a picture of its own."""
    cells = (pixels * 15).astype(np.uint8)
    rows = len(cells) // COLUMNS
    sheet = cells.reshape(rows, COLUMNS, 8, 8).transpose(0, 2, 1, 3).reshape(rows * 8, COLUMNS * 8)
    Image.fromarray(sheet).save(HERE / "heldout.png", optimize=True)
    for digit in range(10):
        first = int(np.flatnonzero(labels == digit)[0])
        Image.fromarray(cells[first]).save(HERE / f"digit{digit}.png", optimize=True)


def read_sheet():
    """The inverse of write_pictures, as main.cpp does it: [360,1,8,8] in 0..1."""
    sheet = np.asarray(Image.open(HERE / "heldout.png"))
    cells = sheet.reshape(-1, 8, COLUMNS, 8).transpose(0, 2, 1, 3).reshape(-1, 1, 8, 8)
    return cells.astype(np.float32) / np.float32(240)


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)

    digits = load_digits()
    pixels, labels = digits.images, digits.target
    images = (pixels[:, None] / 16).astype(np.float32)

    net = train(torch.from_numpy(images[:TRAINED_ON]), torch.from_numpy(labels[:TRAINED_ON]))
    export(net, HERE / "digits.onnx")
    write_pictures(pixels[-HELD_OUT:], labels[-HELD_OUT:])

    heldout = read_sheet()
    assert np.array_equal(heldout, images[-HELD_OUT:]), "the contact sheet must decode to the exact input"
    session = onnxruntime.InferenceSession(HERE / "digits.onnx", providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {"image": heldout})[0]
    predictions = logits.argmax(axis=1)
    with torch.no_grad():
        difference = np.abs(net(torch.from_numpy(heldout)).numpy() - logits).max()

    np.savetxt(HERE / "labels.txt", labels[-HELD_OUT:], fmt="%d")
    np.savetxt(HERE / "onnxruntime_predictions.txt", predictions, fmt="%d")
    best_two = np.sort(logits, axis=1)[:, -2:]
    print(f"held out: {(predictions == labels[-HELD_OUT:]).sum()} of {HELD_OUT} right")
    print(f"ONNX Runtime and torch differ by at most {difference:.1e}; closest call {np.diff(best_two).min():.3f}")


if __name__ == "__main__":
    main()
