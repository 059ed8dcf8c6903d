"""Trains the segmentation net and writes every file that the demo reads.

    python train.py            # about two minutes on one core

The net learns to separate what is bright in a photograph from what is dark. Its teacher is a classical method on the
same 128x128 crop: Otsu's threshold of the smoothed luminance (N. Otsu, "A threshold selection method from gray-level
histograms", 1979), then specks and holes below 40 pixels removed. The threshold depends on the whole crop, so the
net has to look far as well as closely: it goes down to 4x4 and comes back up through sums, the usual shape of a
segmentation net, small enough to read.

Photographs are those that ship inside scikit-image (DATA_LICENSE.md). Four of them are held out whole: the net never
saw a pixel of coins, coffee, rocket or camera. Four pictures show what it does; they are too few to measure it.

Invariants that main.cpp relies on:
  * the net's input is "image" float32 [1,3,128,128], planes R, G, B, in 0..1 (byte / 255);
  * its output is "mask" float32 [1,1,128,128], the probability of bright; the mask is where it is >= 0.5;
  * NAME_onnxruntime.npy is ONNX Runtime's output for NAME.png, NAME_mask.png the same as a picture (0 or 255).
"""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from PIL import Image
from skimage import color, data, filters, morphology
from torch import nn
from torch.nn.functional import interpolate

HERE = Path(__file__).resolve().parent
SEED = 1
SIZE = 128
CROPS, EPOCHS, BATCH = 800, 20, 16

TRAINED_ON = [data.astronaut, data.chelsea, data.immunohistochemistry, data.hubble_deep_field, data.retina, data.cell]
# Photograph, and the square of it that becomes the test picture: top, left, side.
HELD_OUT = {
    "coins": (data.coins, 20, 100, 220),
    "coffee": (data.coffee, 20, 120, 360),
    "rocket": (data.rocket, 90, 190, 330),
    "camera": (data.camera, 20, 40, 470),
}


def conv(channels_in, channels_out, stride=1):
    """3x3 convolution, batch norm, ReLU; the norm helps training and is folded into the convolution at export."""
    return nn.Sequential(OrderedDict(
        conv=nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False),
        norm=nn.BatchNorm2d(channels_out),
        relu=nn.ReLU(),
    ))


class Segmentation(nn.Module):
    """[1,3,128,128] in 0..1 -> probability [1,1,128,128]. Sizes below are those of the maps, 128 at the input."""

    def __init__(self):
        super().__init__()
        self.down64 = conv(3, 12, stride=2)
        self.down32 = conv(12, 24, stride=2)
        self.down16 = conv(24, 32, stride=2)
        self.down8 = conv(32, 40, stride=2)
        self.down4 = conv(40, 40, stride=2)
        self.deep4 = conv(40, 40)
        self.side4 = nn.Conv2d(40, 24, 1)
        self.side8 = nn.Conv2d(40, 24, 1)
        self.side16 = nn.Conv2d(32, 24, 1)
        self.side32 = nn.Conv2d(24, 24, 1)
        self.side64 = nn.Conv2d(12, 24, 1)
        self.head = conv(24, 16)
        self.score = nn.Conv2d(16, 1, 1)

    def forward(self, image):
        x64 = self.down64(image)
        x32 = self.down32(x64)
        x16 = self.down16(x32)
        x8 = self.down8(x16)
        x4 = self.deep4(self.down4(x8))
        x = self.side8(x8) + self.twice(self.side4(x4))
        x = self.side16(x16) + self.twice(x)
        x = self.side32(x32) + self.twice(x)
        x = self.side64(x64) + self.twice(x)
        x = self.score(self.head(x))
        return torch.sigmoid(self.twice(x))

    @staticmethod
    def twice(x):
        return interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


def teacher(picture):
    """uint8 [H,W,3] -> bool [H,W]: bright by Otsu's threshold, without specks and holes."""
    luminance = filters.gaussian(color.rgb2gray(picture), sigma=1)
    mask = luminance > filters.threshold_otsu(luminance)
    return morphology.remove_small_holes(morphology.remove_small_objects(mask, max_size=40), max_size=40)


def square(photograph, top, left, side):
    """The square as a picture of SIZE x SIZE, uint8 RGB."""
    crop = Image.fromarray(photograph[top : top + side, left : left + side]).convert("RGB")
    return np.asarray(crop.resize((SIZE, SIZE), Image.Resampling.BICUBIC))


def crops(random):
    """Random squares, mirrored, turned and with their colours bent, each with the teacher's mask of the result."""
    pictures, masks = [], []
    photographs = [load() for load in TRAINED_ON]
    while len(pictures) < CROPS:
        photograph = photographs[len(pictures) % len(photographs)]
        height, width = photograph.shape[:2]
        side = int(random.integers(96, min(height, width) + 1))
        top, left = random.integers(0, height - side + 1), random.integers(0, width - side + 1)
        picture = np.rot90(square(photograph, top, left, side), random.integers(0, 4))
        if random.random() < 0.5:
            picture = picture[:, ::-1]
        bent = (picture / 255.0) ** random.uniform(0.6, 1.6, 3)
        low, high = random.uniform(0, 0.3), random.uniform(0.6, 1)
        picture = np.round(255 * (low + (high - low) * bent)).astype(np.uint8)
        pictures.append(picture)
        masks.append(teacher(picture))
    return np.stack(pictures), np.stack(masks)


def to_input(pictures):
    """uint8 [N,H,W,3] -> float32 [N,3,H,W] in 0..1, as main.cpp does it."""
    return np.ascontiguousarray(pictures.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255))


def train(pictures, masks):
    net = Segmentation()
    inputs, targets = torch.from_numpy(to_input(pictures)), torch.from_numpy(masks[:, None].astype(np.float32))
    steps = EPOCHS * -(-len(inputs) // BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    loss_of = nn.BCELoss()
    for epoch in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(inputs)).split(BATCH):
            loss = loss_of(net(inputs[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:2d}  loss {total / len(inputs):.4f}")
    return net.eval()


def export(net, path):
    """Writes opset 17 with every size fixed. Resize is written as half_pixel, ONNX's own default; the exporter's
    pytorch_half_pixel is the same for every size above one pixel."""
    torch.onnx.export(
        net,
        (torch.zeros(1, 3, SIZE, SIZE),),
        path,
        opset_version=17,
        dynamo=False,
        input_names=["image"],
        output_names=["mask"],
    )
    model = onnx.load(path)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "coordinate_transformation_mode":
                attribute.s = b"half_pixel"
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def overlap(a, b):
    """Intersection over union of two masks."""
    return (a & b).sum() / max(1, (a | b).sum())


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)

    net = train(*crops(np.random.default_rng(SEED)))
    export(net, HERE / "segmentation.onnx")
    session = onnxruntime.InferenceSession(HERE / "segmentation.onnx", providers=["CPUExecutionProvider"])

    for name, (load, *where) in HELD_OUT.items():
        picture = square(load(), *where)
        Image.fromarray(picture).save(HERE / f"{name}.png", optimize=True)
        image = to_input(picture[None])
        probability = session.run(["mask"], {"image": image})[0]
        with torch.no_grad():
            difference = np.abs(net(torch.from_numpy(image)).numpy() - probability).max()
        mask = probability[0, 0] >= 0.5
        Image.fromarray(mask).save(HERE / f"{name}_mask.png", optimize=True)
        np.save(HERE / f"{name}_onnxruntime.npy", probability)
        truth = teacher(picture)
        print(f"{name:8s} pixels as the teacher's {(mask == truth).mean():.3f}  intersection/union "
              f"{overlap(mask, truth):.3f}  ONNX Runtime and torch differ by at most {difference:.1e}")


if __name__ == "__main__":
    main()
