"""Pictures to learn from: labelled frames of one camera, changed in every way that should not matter."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from .labels import Labels, difference, empty_scene
from .objective import targets

SIZE = 288, 384  # height and width of the network's input: half of a frame's
PAD = 114  # grey around a picture that doesn't fill the input
LEAST_VISIBLE = 0.35  # the share of an object that must be in the picture for it to count
MARGIN = 0.12  # of a person's box that is cut out with it
CROWDED = 0.3  # the share of anybody's box that a pasted person may cover


@dataclass(frozen=True)
class Cutout:
    """A person without its surroundings: BGR [h, w, 3], how much of each pixel is the person [h, w, 1], box [4]."""

    pixels: np.ndarray
    alpha: np.ndarray
    box: np.ndarray


@dataclass
class Picture:
    """BGR uint8 [height, width, 3]; boxes float32 [n, 4] as x1, y1, x2, y2 in pixels, and their classes [n]."""

    pixels: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray


class Scenes:
    """Makes pictures from frames uint8 [n, height, width, 3] (BGR) with labels; `first` is the first frame's number."""

    def __init__(self, frames: np.ndarray, labels: Labels, first: int):
        self.frames, self.labels, self.first = frames, labels, first
        self.scene = empty_scene(frames)
        self.random = np.random.default_rng()

    def batch(self, size: int, seed: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """uint8 [size, 3, H, W] (RGB), and targets float32 [size, C + 5, H/4, W/4]; the same for the same seed."""
        self.random = np.random.default_rng(seed)
        pictures = [self.picture() for _ in range(size)]
        images = np.stack([p.pixels[:, :, ::-1].transpose(2, 0, 1) for p in pictures])
        return np.ascontiguousarray(images), np.stack([targets(p.boxes, p.classes, *SIZE) for p in pictures])

    def picture(self) -> Picture:
        """One, of the network's size."""
        picture = self.empty_ground() if self.chance(0.15) else self.frame(self.any_frame())
        for _ in range(self.random.integers(0, 5) if self.chance(0.5) else 0):
            self.paste(picture, self.cutout())
        return self.recolour(self.look_at(picture))

    def chance(self, share: float) -> bool:
        """True that often."""
        return self.random.random() < share

    def any_frame(self) -> int:
        """An index into the frames."""
        return int(self.random.integers(len(self.frames)))

    def frame(self, index: int) -> Picture:
        """A frame as it was recorded."""
        boxes, classes = self.labels.of(self.first + index)
        return Picture(self.frames[index].copy(), boxes, classes)

    def empty_ground(self) -> Picture:
        """Grass, road and posts with nobody on them, turned about: another street."""
        ground = self.scene[int(self.labels.cars[:, 3].max(initial=0)) :]
        turned = np.rot90(ground, int(self.random.integers(4)))
        pixels = cv2.resize(turned, self.scene.shape[1::-1])
        return Picture(pixels, np.zeros((0, 4), np.float32), np.zeros(0, int))

    # ---- people from elsewhere

    def cutout(self) -> Cutout:
        """Somebody from any frame, where the frame differs from the empty scene."""
        while True:
            index = self.any_frame()
            people = self.labels.people[self.first + index]
            if len(people):
                break
        box = people[self.random.integers(len(people))]
        frame, margin = self.frames[index], MARGIN * np.tile(box[2:] - box[:2], 2) * (-1, -1, 1, 1)
        limits = [*frame.shape[1::-1]] * 2
        x1, y1, x2, y2 = np.clip((box + margin).round().astype(int), 0, limits)
        place = slice(y1, y2), slice(x1, x2)
        solid = cv2.dilate(difference(frame[place], self.scene[place]).astype(np.float32), np.ones((3, 3)))
        alpha = cv2.GaussianBlur(solid, (5, 5), 0)[:, :, None]
        return Cutout(frame[place], alpha, box - (x1, y1, x1, y1))

    def paste(self, picture: Picture, person: Cutout) -> None:
        """Puts a person somewhere, larger or smaller, unless that hides somebody."""
        factor = float(np.exp(self.random.uniform(-0.5, 0.5)))
        pixels, alpha = (cv2.resize(part, None, fx=factor, fy=factor) for part in (person.pixels, person.alpha))
        if self.chance(0.5):
            pixels, alpha, box = pixels[:, ::-1], alpha[:, ::-1], mirrored(person.box * factor, pixels.shape[1])
        else:
            box = person.box * factor
        (height, width), (rows, columns) = pixels.shape[:2], picture.pixels.shape[:2]
        if height >= rows or width >= columns:
            return
        y, x = self.random.integers(rows - height), self.random.integers(columns - width)
        box = (box + (x, y, x, y)).astype(np.float32)
        if (hidden(picture.boxes, box) > CROWDED).any():
            return
        under = picture.pixels[y : y + height, x : x + width]
        under[:] = under + (pixels.astype(np.float32) - under) * alpha[:, :, None]
        picture.boxes = np.concatenate([picture.boxes, box[None]])
        picture.classes = np.append(picture.classes, 0)

    # ---- another camera

    def look_at(self, picture: Picture) -> Picture:
        """A view of the network's size: nearer or farther, aside, mirrored."""
        height, width = SIZE
        rows, columns = picture.pixels.shape[:2]
        scale = width / columns * float(np.exp(self.random.uniform(-0.35, 0.45)))
        stretch = float(np.exp(self.random.uniform(-0.08, 0.08)))
        sx, sy = scale * stretch, scale / stretch
        room_x, room_y = width - sx * columns, height - sy * rows
        dx, dy = self.random.uniform(0, 1) * room_x, self.random.uniform(0, 1) * room_y
        boxes = picture.boxes * (sx, sy, sx, sy) + (dx, dy, dx, dy)
        # where half-pixel centres go
        matrix = np.array([[sx, 0, dx + (sx - 1) / 2], [0, sy, dy + (sy - 1) / 2]])
        pixels = cv2.warpAffine(picture.pixels, matrix, (width, height), borderValue=(PAD,) * 3)
        if self.chance(0.5):
            pixels, boxes = pixels[:, ::-1], mirrored(boxes, width)
        return visible(Picture(pixels, boxes.astype(np.float32), picture.classes))

    def recolour(self, picture: Picture) -> Picture:
        """Another light, another sensor."""
        draw = self.random
        gain = np.exp(draw.uniform(-0.3, 0.3) + draw.uniform(-0.06, 0.06, 3)).astype(np.float32)
        colour, light = draw.uniform(0.4, 1.4), draw.uniform(-25, 25)
        grey = cv2.cvtColor(picture.pixels, cv2.COLOR_BGR2GRAY).astype(np.float32)[:, :, None] * ((1 - colour) * gain)
        pixels = picture.pixels * (colour * gain) + grey + (light + 128 * (1 - gain))
        if self.chance(0.3):
            pixels += draw.standard_normal(pixels.shape, np.float32) * draw.uniform(2, 10)
        if self.chance(0.15):
            pixels = cv2.GaussianBlur(pixels, (3, 3), 0)
        return Picture(np.clip(pixels, 0, 255).astype(np.uint8), picture.boxes, picture.classes)


def mirrored(boxes: np.ndarray, width: int) -> np.ndarray:
    """Boxes [..., 4] in the mirrored picture."""
    result = boxes.copy()
    result[..., 0], result[..., 2] = width - boxes[..., 2], width - boxes[..., 0]
    return result


def hidden(boxes: np.ndarray, by: np.ndarray) -> np.ndarray:
    """[n]: the share of each box that another one covers."""
    low, high = np.maximum(boxes[:, :2], by[:2]), np.minimum(boxes[:, 2:], by[2:])
    covered = np.clip(high - low, 0, None).prod(axis=1)
    return covered / np.maximum((boxes[:, 2:] - boxes[:, :2]).prod(axis=1), 1e-6)


def visible(picture: Picture) -> Picture:
    """The boxes cut at the picture's edges, without those of which little is left."""
    height, width = picture.pixels.shape[:2]
    cut = np.clip(picture.boxes, 0, [width, height, width, height])
    sizes, whole = cut[:, 2:] - cut[:, :2], picture.boxes[:, 2:] - picture.boxes[:, :2]
    stays = (sizes.prod(axis=1) > LEAST_VISIBLE * whole.prod(axis=1)) & (sizes > 2).all(axis=1)
    return Picture(picture.pixels, cut[stays], picture.classes[stays])
