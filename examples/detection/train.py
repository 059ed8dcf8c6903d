"""Trains the detection net and writes every file that the demo reads.

    python train.py            # about four minutes on one core

The net finds discs, squares and triangles: a box, a class and a mask for each. It is built as the instance
segmentation nets of the YOLO family are (D. Bolya et al., "YOLACT", 2019, for the masks; Z. Tian et al., "FCOS", 2019,
for boxes without anchors), only smaller: each cell of a 16x16 map says whether the middle of an object lies near,
how far the four sides of its box are, and how to mix 8 prototype masks, which are made once for the whole picture,
into the object's own mask.

What follows in such programs as hand-written code is part of the graph here (POSTPROCESS): NonMaxSuppression chooses
cells, Gather takes their boxes, and only their masks are computed. How many there are is not known before the net
runs: the outputs have an extent "D" that the data decide.

The scenes are drawn on photographs that ship inside scikit-image (DATA_LICENSE.md); the pictures that are written, and
the 200 that the figures below are taken from, are drawn on four photographs that the net never saw.

Invariants that main.cpp relies on:
  * the net's input is "image" float32 [1,3,128,128], planes R, G, B, in 0..1 (byte / 255);
  * its outputs are "boxes" float32 [D,4] (left, top, right, bottom, pixels), "scores" float32 [D], "classes" int64 [D]
    (an index of CLASSES), "masks" float32 [D,64,64] (probabilities, 0 outside the box; one for 2x2 pixels);
  * line k of NAME_onnxruntime.txt is detection k as ONNX Runtime computes it, "class score left top right bottom";
    NAME_onnxruntime.png holds the masks under each other, 64 wide, a probability p as the byte round(255 p). Where
    nothing is detected the text is empty and there is no such picture.
"""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from PIL import Image
from skimage import data
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, interpolate

HERE = Path(__file__).resolve().parent
SEED = 1
SIZE, STRIDE, PROTOTYPES = 128, 8, 8
CELLS = SIZE // STRIDE
CLASSES = ["disc", "square", "triangle"]
SCENES, EPOCHS, BATCH = 3200, 5, 16

TRAINED_ON = [data.astronaut, data.chelsea, data.immunohistochemistry, data.hubble_deep_field, data.retina, data.cell,
              data.brick, data.grass]
HELD_OUT = [data.coffee, data.rocket, data.camera, data.gravel]
# Name, photograph, and how many objects the picture shows.
PICTURES = [("coffee", 0, 5), ("rocket", 1, 3), ("camera", 2, 6), ("gravel", 3, 1), ("empty", 1, 0)]

# What follows the convolutions, in ONNX's text form. At most 20 detections; boxes that overlap by more than half are
# the same object, whatever its class; what scores below a half is not one.
POSTPROCESS = """
<ir_version: 8, opset_import: ["": 17]>
postprocess (float[1,256,4] all_boxes, float[1,3,256] class_scores, float[256,8] coefficients,
             float[8,64,64] prototypes)
  => (float[D,4] boxes, float[D] scores, int64[D] classes, float[D,64,64] masks)
  <int64 most = {20}, float overlap = {0.5}, float least_score = {0.5}, int64 cell_column = {2},
   int64[1] picture_axis = {0}, int64[1] channel_axis = {1}, int64[1] every = {-1}, int64[2] flat = {8,4096},
   int64[3] square = {-1,64,64}, int64[4] side_shape = {-1,4,1,1}, float zero = {0}>
{
  best_scores = ReduceMax <axes = [1], keepdims = 1> (class_scores)
  best_classes = ArgMax <axis = 1> (class_scores)
  picked = NonMaxSuppression (all_boxes, best_scores, most, overlap, least_score)
  cells = Gather <axis = 1> (picked, cell_column)

  flat_scores = Reshape (best_scores, every)
  scores = Gather (flat_scores, cells)
  flat_classes = Reshape (best_classes, every)
  classes = Gather (flat_classes, cells)
  boxes_of_picture = Squeeze (all_boxes, picture_axis)
  boxes = Gather (boxes_of_picture, cells)

  mixture = Gather (coefficients, cells)
  flat_prototypes = Reshape (prototypes, flat)
  flat_masks = MatMul (mixture, flat_prototypes)
  mask_logits = Reshape (flat_masks, square)
  whole_masks = Sigmoid (mask_logits)

  sides = Reshape (boxes, side_shape)
  left, top, right, bottom = Split <axis = 1> (sides)
  x = Constant <value = float[1,1,1,64] {XS}> ()
  y = Constant <value = float[1,1,64,1] {XS}> ()
  after_left = GreaterOrEqual (x, left)
  before_right = LessOrEqual (x, right)
  below_top = GreaterOrEqual (y, top)
  above_bottom = LessOrEqual (y, bottom)
  columns = And (after_left, before_right)
  rows = And (below_top, above_bottom)
  inside4 = And (columns, rows)
  inside = Squeeze (inside4, channel_axis)
  masks = Where (inside, whole_masks, zero)
}
""".replace("XS", ",".join(str(2 * k + 1) for k in range(64)))


def conv(channels_in, channels_out, stride=1):
    """3x3 convolution, batch norm, ReLU; the norm helps training and is folded into the convolution at export."""
    return nn.Sequential(OrderedDict(
        conv=nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False),
        norm=nn.BatchNorm2d(channels_out),
        relu=nn.ReLU(),
    ))


class Detection(nn.Module):
    """[N,3,128,128] in 0..1 -> all cells' boxes [N,256,4] in pixels, class logits [N,3,256], mask coefficients
    [N,256,8], and prototypes [N,8,64,64]. Numbers in names are the sizes of the maps."""

    def __init__(self):
        super().__init__()
        self.down64 = conv(3, 12, stride=2)
        self.down32 = conv(12, 24, stride=2)
        self.same32 = conv(24, 24)
        self.down16 = conv(24, 48, stride=2)
        self.same16 = conv(48, 48)
        self.down8 = conv(48, 64, stride=2)
        self.same8 = conv(64, 64)
        self.up16 = nn.Conv2d(64, 48, 1)
        self.merged16 = conv(48, 48)
        self.class_conv = conv(48, 32)
        self.class_head = nn.Conv2d(32, len(CLASSES), 1)
        self.box_conv = conv(48, 32)
        self.box_head = nn.Conv2d(32, 4, 1)
        self.mask_head = nn.Conv2d(32, PROTOTYPES, 1)
        self.up32 = nn.Conv2d(48, 24, 1)
        self.merged32 = conv(24, 16)
        self.side64 = nn.Conv2d(12, 16, 1)
        self.prototype_conv = conv(16, 16)
        self.prototype_head = nn.Conv2d(16, PROTOTYPES, 1)
        nn.init.constant_(self.class_head.bias, -4.0)  # at first every cell says: rather nothing
        centre = (torch.arange(CELLS) + 0.5) * STRIDE
        x, y = centre.repeat(CELLS), centre.repeat_interleave(CELLS)
        self.register_buffer("centres", torch.stack([x, y], 1)[None])

    def forward(self, image):
        x64 = self.down64(image)
        x32 = self.same32(self.down32(x64))
        x16 = self.same16(self.down16(x32))
        x16 = self.merged16(x16 + twice(self.up16(self.same8(self.down8(x16)))))
        p32 = self.merged32(x32 + twice(self.up32(x16)))
        prototypes = self.prototype_head(self.prototype_conv(self.side64(x64) + twice(p32)))
        boxes = self.box_conv(x16)
        logits = self.class_head(self.class_conv(x16)).flatten(2)
        reach = torch.exp(self.box_head(boxes).flatten(2).transpose(1, 2)) * (2 * STRIDE)
        boxes_xyxy = torch.cat([self.centres - reach[..., :2], self.centres + reach[..., 2:]], 2)
        return boxes_xyxy, logits, self.mask_head(boxes).flatten(2).transpose(1, 2), prototypes


def twice(x):
    return interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


class Exported(nn.Module):
    """The net as POSTPROCESS wants it: scores instead of logits, and no batch where it would only be in the way."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        boxes, logits, coefficients, prototypes = self.net(image)
        return boxes, torch.sigmoid(logits), coefficients[0], prototypes[0]


def background(photograph, random):
    """A random square of the photograph, turned, mirrored and with its colours bent: float64 [128,128,3], 0..255."""
    height, width = photograph.shape[:2]
    side = int(random.integers(128, min(height, width) + 1))
    top, left = random.integers(0, height - side + 1), random.integers(0, width - side + 1)
    crop = Image.fromarray(photograph[top : top + side, left : left + side]).convert("RGB").resize((SIZE, SIZE))
    picture = np.rot90(np.asarray(crop, dtype=np.float64), random.integers(0, 4))
    if random.random() < 0.5:
        picture = picture[:, ::-1]
    low, high = random.uniform(0, 60), random.uniform(170, 255)
    return low + (high - low) * (picture / 255) ** random.uniform(0.6, 1.6, 3)


def coverage(kind, x, y, radius, angle):
    """How much of each pixel the shape covers, [128,128] in 0..1: its signed distance, cut off at half a pixel."""
    across, down = np.arange(SIZE) + 0.5 - x, (np.arange(SIZE) + 0.5 - y)[:, None]
    if CLASSES[kind] == "disc":
        return np.clip(radius - np.hypot(across, down) + 0.5, 0, 1)
    corners = {"square": 4, "triangle": 3}[CLASSES[kind]]
    to_side = radius * np.cos(np.pi / corners)  # radius reaches to the corners
    normals = angle + 2 * np.pi / corners * np.arange(corners)
    distance = np.min([to_side - np.cos(normal) * across - np.sin(normal) * down for normal in normals], axis=0)
    return np.clip(distance + 0.5, 0, 1)


def paint(picture, cover, random):
    """Blends a colour unlike what it hides over the picture, brighter towards one side."""
    hidden = (picture * cover[..., None]).sum((0, 1)) / cover.sum()
    while True:
        paint = random.uniform(0, 255, 3)
        if np.abs(paint - hidden).max() > 60:
            break
    slope = random.uniform(-0.4, 0.4, 2) / SIZE
    light = 1 + slope[0] * (np.arange(SIZE) - SIZE / 2) + slope[1] * (np.arange(SIZE) - SIZE / 2)[:, None]
    return picture + cover[..., None] * (paint * light[..., None] - picture)


def scene(photograph, count, random):
    """A picture uint8 [128,128,3] with count objects, their classes [count] and what is seen of each,
    bool [count,128,128]. Later objects may hide a little of earlier ones."""
    picture, kinds, masks = background(photograph, random), [], []
    while len(kinds) < count:
        kind, radius = int(random.integers(0, 3)), random.uniform(11, 26)
        x, y = random.uniform(radius, SIZE - radius, 2)
        cover = coverage(kind, x, y, radius, random.uniform(0, 2 * np.pi))
        mask = cover >= 0.5
        if any((mask & other).sum() > 0.15 * min(mask.sum(), other.sum()) for other in masks):
            continue
        picture = paint(picture, cover, random)
        masks = [other & ~mask for other in masks] + [mask]
        kinds.append(kind)
    picture = picture + random.normal(0, random.uniform(0, 8), picture.shape)
    masks = np.stack(masks) if masks else np.zeros((0, SIZE, SIZE), bool)
    return np.clip(np.round(picture), 0, 255).astype(np.uint8), np.array(kinds, int), masks


def turned(a_scene, how):
    """The same scene turned by how % 4 quarters and, from 4 on, mirrored."""
    picture, kinds, masks = a_scene
    picture, masks = np.rot90(picture, how % 4), np.rot90(masks, how % 4, axes=(1, 2))
    return (picture, kinds, masks) if how < 4 else (picture[:, ::-1], kinds, masks[:, :, ::-1].copy())


def to_input(pictures):
    """uint8 [N,H,W,3] -> float32 [N,3,H,W] in 0..1, as main.cpp does it."""
    return np.ascontiguousarray(np.asarray(pictures).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255))


def boxes_of(masks):
    """[n,128,128] -> left, top, right, bottom [n,4]."""
    boxes = []
    for mask in masks:
        columns, rows = np.flatnonzero(mask.any(0)), np.flatnonzero(mask.any(1))
        boxes.append([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    return np.array(boxes, np.float32).reshape(-1, 4)


def overlap(a, b):
    """Intersection over union of boxes [...,4], and their generalised one (H. Rezatofighi et al., 2019)."""
    inner = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    union = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - inner
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    return inner / union, inner / union - (hull - union) / hull


def loss_of(net, pictures, kinds, masks):
    """Focal loss for classes (T. Lin et al., 2017), generalised overlap for boxes, cross entropy for masks. The cells
    whose centre is within 10 pixels of an object's, and on its box, answer for it."""
    boxes, logits, coefficients, prototypes = net(torch.from_numpy(to_input(pictures)))
    wanted = torch.zeros_like(logits)
    box_loss, mask_loss, positives = 0.0, 0.0, 0
    for k in range(len(pictures)):
        if len(kinds[k]) == 0:
            continue
        truth = torch.from_numpy(boxes_of(masks[k]))
        centre = (truth[:, None, :2] + truth[:, None, 2:]) / 2
        away = (net.centres - centre).abs().amax(2)  # [objects, cells]
        nearest, owner = away.min(0)
        cells = torch.nonzero(nearest <= 10)[:, 0]
        owner = owner[cells]
        wanted[k, torch.from_numpy(kinds[k])[owner], cells] = 1
        box_loss = box_loss + (1 - overlap(boxes[k, cells], truth[owner])[1]).sum()

        small = interpolate(torch.from_numpy(masks[k][None].astype(np.float32, order="C")), scale_factor=0.5, mode="area")[0]
        grid = torch.arange(64) * 2 + 1.0
        grown = truth + torch.tensor([-4.0, -4.0, 4.0, 4.0])
        inside = (((grid >= grown[:, :1]) & (grid <= grown[:, 2:3]))[:, None, :]
                  & ((grid >= grown[:, 1:2]) & (grid <= grown[:, 3:]))[:, :, None]).float()
        mixed = (coefficients[k, cells] @ prototypes[k].flatten(1)).view(-1, 64, 64)
        entropy = binary_cross_entropy_with_logits(mixed, small[owner], reduction="none") * inside[owner]
        mask_loss = mask_loss + (entropy.sum((1, 2)) / inside[owner].sum((1, 2))).sum()
        positives += len(cells)
    log_right = nn.functional.logsigmoid(torch.where(wanted > 0, logits, -logits))
    class_loss = -((1 - log_right.exp()) ** 2 * log_right).sum()
    return class_loss / positives, box_loss / positives, mask_loss / positives


def train(random):
    net = Detection()
    photographs = [load() for load in TRAINED_ON]
    scenes = [scene(photographs[k % len(photographs)], random.integers(0, 7), random) for k in range(SCENES)]
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=EPOCHS * SCENES // BATCH)
    for step in range(EPOCHS * SCENES // BATCH):
        if step % (SCENES // BATCH) == 0:
            order = random.permutation(SCENES)
        batch = [turned(scenes[k], random.integers(8)) for k in np.roll(order, -step * BATCH)[:BATCH]]
        losses = loss_of(net, *zip(*batch))
        optimizer.zero_grad()
        (losses[0] + losses[1] + losses[2]).backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1:4d}  class {losses[0]:.3f}  box {losses[1]:.3f}  mask {losses[2]:.3f}")
    return net.eval()


def export(net, path):
    """Writes opset 17: what torch exports, with POSTPROCESS joined on."""
    names = ["all_boxes", "class_scores", "coefficients", "prototypes"]
    torch.onnx.export(Exported(net), (torch.zeros(1, 3, SIZE, SIZE),), path, opset_version=17, dynamo=False,
                      input_names=["image"], output_names=names)
    convolutions = onnx.load(path)
    postprocess = onnx.parser.parse_model(POSTPROCESS)
    postprocess.ir_version = convolutions.ir_version
    model = onnx.compose.merge_models(convolutions, postprocess, io_map=[(name, name) for name in names])
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def run(session, picture):
    return session.run(["boxes", "scores", "classes", "masks"], {"image": to_input(picture[None])})


def measure(session, photographs, random):
    """Matches detections with objects of 200 scenes, best score first; prints what was found, missed and invented."""
    found = objects = detections = right_class = 0
    box_overlaps, mask_overlaps = [], []
    for k in range(200):
        picture, kinds, masks = scene(photographs[k % len(photographs)], k % 7, random)
        boxes, scores, classes, probabilities = run(session, picture)
        truth, free = torch.from_numpy(boxes_of(masks)), set(range(len(kinds)))
        objects, detections = objects + len(kinds), detections + len(boxes)
        for d in np.argsort(-scores):
            if not free:
                break
            best = max(free, key=lambda j: overlap(torch.from_numpy(boxes[d]), truth[j])[0])
            shared = float(overlap(torch.from_numpy(boxes[d]), truth[best])[0])
            if shared < 0.5:
                continue
            free.remove(best)
            found += 1
            right_class += int(classes[d] == kinds[best])
            seen = probabilities[d].repeat(2, 0).repeat(2, 1) >= 0.5
            box_overlaps.append(shared)
            mask_overlaps.append((seen & masks[best]).sum() / (seen | masks[best]).sum())
    print(f"held out: {objects} objects, {found} found, {right_class} of them with the right class, "
          f"{detections - found} invented; overlap of boxes {np.mean(box_overlaps):.3f}, "
          f"of masks {np.mean(mask_overlaps):.3f}")


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # more threads would sum in another order
    torch.use_deterministic_algorithms(True)

    net = train(np.random.default_rng(SEED))
    export(net, HERE / "detection.onnx")
    session = onnxruntime.InferenceSession(HERE / "detection.onnx", providers=["CPUExecutionProvider"])
    photographs = [load() for load in HELD_OUT]
    measure(session, photographs, np.random.default_rng(SEED + 1))

    random = np.random.default_rng(SEED + 2)
    for name, photograph, count in PICTURES:
        picture, kinds, _ = scene(photographs[photograph], count, random)
        Image.fromarray(picture).save(HERE / f"{name}.png", optimize=True)
        boxes, scores, classes, masks = run(session, picture)
        with open(HERE / f"{name}_onnxruntime.txt", "w") as file:
            for box, score, kind in zip(boxes, scores, classes):
                file.write(f"{kind} {score:.6f} " + " ".join(f"{side:.4f}" for side in box) + "\n")
        (HERE / f"{name}_onnxruntime.png").unlink(missing_ok=True)
        if len(masks):
            levels = np.round(255 * masks.reshape(-1, 64)).astype(np.uint8)
            Image.fromarray(levels).save(HERE / f"{name}_onnxruntime.png", optimize=True)
        print(f"{name:8s} {count} objects, {len(boxes)} detections, "
              f"classes {sorted(kinds.tolist())} and {sorted(classes.tolist())}")


if __name__ == "__main__":
    main()
