"""Labels of a fixed camera's frames: what a teacher sees in them, and what time and motion say about it.

People move: what doesn't differ from the empty scene is none of them, and who is seen now and then is there in between.
Parked cars don't: they are where the teacher sees one in most of the frames.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from tensor_engine.perception.accuracy import overlaps

Boxes = np.ndarray  # float32 [n, 6]: x1, y1, x2, y2 in pixels, score, class

SAME_OBJECT = 0.5  # overlap of two sights of one object in one frame
SUPPORT = 1.0  # the sum of the scores of an object's sights, from which on it is believed
MOVING = 0.15  # the share of a person's box that differs from the empty scene
NEARLY_ALL, MUCH, WEAK = 0.75, 0.4, 0.5  # shares of the smaller box, and of the support: see is_double
DIFFERENT = 24  # grey levels
CAR_SHARE, CAR_SUPPORT, CAR_WIDTH = 0.5, 4.0, 30  # a parked car: its share of the frames, support there, pixels

REACH = 0.7  # heights: a person's centre is so near to where it is expected
PATIENCE = 12  # frames for which a person may be unseen
SMOOTH = 3  # frames before and after
LEAST_LOOKS, LEAST_MEAN = 3, 2.0  # a track has so many looks, of so much support on average


@dataclass
class Labels:
    """Boxes [n, 4] in pixels: the people of each labelled frame, and the parked cars of all frames."""

    people: dict[int, np.ndarray]
    cars: np.ndarray

    def of(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Boxes [n, 4] and their classes [n] of a frame: 0 person, 1 car."""
        people = self.people[frame]
        boxes = np.concatenate([people, self.cars]).astype(np.float32)
        return boxes, np.repeat([0, 1], [len(people), len(self.cars)])

    def save(self, path: Path) -> None:
        """As JSON, a frame a line."""
        rows = {str(number): np.round(boxes).astype(int).tolist() for number, boxes in sorted(self.people.items())}
        lines = ",\n".join(f'  "{number}": {json.dumps(boxes)}' for number, boxes in rows.items())
        cars = json.dumps(np.round(self.cars).astype(int).tolist())
        path.write_text(f'{{"cars": {cars}, "people": {{\n{lines}\n}}}}\n', encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Labels:
        """What `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        people = {int(number): box_array(boxes) for number, boxes in values["people"].items()}
        return Labels(people, box_array(values["cars"]))


def box_array(boxes: Sequence[Sequence[float] | np.ndarray]) -> np.ndarray:
    """float32 [n, 4], also of none."""
    return np.array(boxes, np.float32).reshape(-1, 4)


def empty_scene(frames: np.ndarray) -> np.ndarray:
    """What the camera sees when nobody is there: each pixel's median over frames [n, height, width, 3]."""
    return np.median(frames[:: max(1, len(frames) // 50)], axis=0).astype(np.uint8)


def label(frames: np.ndarray, sights: dict[int, Boxes]) -> Labels:
    """Labels for all frames between the first and the last that the teacher has seen. `sights`: frame → all it saw."""
    scene = empty_scene(frames)
    fused = {number: fuse(boxes) for number, boxes in sorted(sights.items())}
    looks = {number: moving_people(frames[number], scene, objects) for number, objects in fused.items()}
    people = fill(follow(looks))
    every = range(min(sights), max(sights) + 1)
    return Labels({number: box_array(people.get(number, [])) for number in every}, parked_cars(list(fused.values())))


# ---- one frame --------------------------------------------------------------------------------------------------


def fuse(sights: Boxes) -> Boxes:
    """Each object once: the mean of its sights' boxes, weighted by their scores, and the sum of the scores."""
    sights, objects = sights[np.argsort(-sights[:, 4])], []
    while len(sights):
        same = (overlaps(sights[:1], sights)[0] > SAME_OBJECT) & (sights[:, 5] == sights[0, 5])
        group, sights = sights[same], sights[~same]
        objects.append([*np.average(group[:, :4], axis=0, weights=group[:, 4]), group[:, 4].sum(), group[0, 5]])
    return np.array(objects, np.float32).reshape(-1, 6)


def moving_people(frame: np.ndarray, scene: np.ndarray, objects: Boxes) -> Boxes:
    """Those of the people with enough support that are not a part of the scene; no one twice."""
    believed = objects[(objects[:, 5] == 0) & (objects[:, 4] >= SUPPORT)]
    changed = np.cumsum(np.cumsum(difference(frame, scene), axis=0), axis=1)
    moving = believed[[changed_share(changed, box) >= MOVING for box in believed[:, :4]]]
    return without_doubles(moving)


def difference(frame: np.ndarray, scene: np.ndarray) -> np.ndarray:
    """bool [height, width]: where a frame shows something else than the scene."""
    return cv2.absdiff(frame, scene).max(axis=2) > DIFFERENT


def changed_share(sums: np.ndarray, box: np.ndarray) -> float:
    """The share of a box's pixels that are set, from the sums of all pixels above and left of each."""
    x1, y1, x2, y2 = np.clip(box.round().astype(int), 0, [*sums.shape[::-1]] * 2)
    edged = np.pad(sums, ((1, 0), (1, 0)))
    count = edged[y2, x2] - edged[y1, x2] - edged[y2, x1] + edged[y1, x1]
    return count / max(1, (x2 - x1) * (y2 - y1))


def without_doubles(people: Boxes) -> Boxes:
    """Without the boxes that better supported people explain."""
    kept: list[np.ndarray] = []
    for person in people[np.argsort(-people[:, 4])]:
        if not any(is_double(person, other) for other in kept):
            kept.append(person)
    return np.array(kept, np.float32).reshape(-1, 6)


def is_double(person: np.ndarray, other: np.ndarray) -> bool:
    """Whether a box shares nearly all with a better supported one, or much and has far less support."""
    low, high = np.maximum(person[:2], other[:2]), np.minimum(person[2:4], other[2:4])
    sizes = [(box[2:4] - box[:2]).prod() for box in (person, other)]
    shared = np.clip(high - low, 0, None).prod() / min(sizes)
    return bool(shared > NEARLY_ALL or (shared > MUCH and person[4] < WEAK * other[4]))


def parked_cars(frames: list[Boxes]) -> np.ndarray:
    """Boxes [n, 4] where most frames show a car."""
    places = np.concatenate(frames)
    wide = places[:, 2] - places[:, 0] >= CAR_WIDTH
    places = places[(places[:, 5] == 1) & (places[:, 4] >= CAR_SUPPORT) & wide]
    boxes = []
    while len(places):
        same = overlaps(places[np.argmax(places[:, 4])][None], places)[0] > SAME_OBJECT
        if same.sum() >= CAR_SHARE * len(frames):
            boxes.append(np.median(places[same, :4], axis=0))
        places = places[~same]
    return box_array(boxes)


# ---- over time --------------------------------------------------------------------------------------------------


@dataclass
class Track:
    """One person's looks: frame → box and support."""

    looks: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The frame of the newest look."""
        return [*self.looks][-1]

    def expected(self, frame: int) -> np.ndarray:
        """Where the box should be, going on as between the last two looks."""
        last = self.last
        box = self.looks[last][:4]
        if len(self.looks) < 2:
            return box
        before = [*self.looks][-2]
        step = (centre(box) - centre(self.looks[before])) / (last - before)
        return box + np.tile(step, 2) * (frame - last)

    @property
    def is_person(self) -> bool:
        """Whether it was seen often and well enough."""
        supports = [look[4] for look in self.looks.values()]
        return len(supports) >= LEAST_LOOKS and float(np.mean(supports)) >= LEAST_MEAN


def centre(boxes: np.ndarray) -> np.ndarray:
    """(x, y) of boxes [..., 4 or more]."""
    return (boxes[..., :2] + boxes[..., 2:4]) / 2


def follow(looks: dict[int, Boxes]) -> list[Track]:
    """Tracks of people: the looks of a frame go to the tracks that expect somebody nearest to them, nearest first."""
    done: list[Track] = []
    active: list[Track] = []
    for frame, boxes in looks.items():
        done += [track for track in active if frame - track.last > PATIENCE]
        active = [track for track in active if frame - track.last <= PATIENCE]
        active += continue_tracks(active, frame, boxes)
    return [track for track in done + active if track.is_person]


def continue_tracks(tracks: list[Track], frame: int, boxes: Boxes) -> list[Track]:
    """Give boxes to tracks; new tracks for those left over."""
    expected = np.array([track.expected(frame) for track in tracks]).reshape(-1, 4)
    far, free = distances(expected, boxes), set(range(len(boxes)))
    while far.size and far.min() < REACH:
        which, box = np.unravel_index(far.argmin(), far.shape)
        tracks[which].looks[frame] = boxes[box]
        free.discard(int(box))
        far[which], far[:, box] = np.inf, np.inf
    return [Track({frame: boxes[box]}) for box in sorted(free)]


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[n, m]: how far the centres of boxes are apart and how much their heights differ, in heights."""
    high, other = a[:, None, 3] - a[:, None, 1], b[:, 3] - b[:, 1]
    return np.linalg.norm(centre(a)[:, None] - centre(b), axis=2) / high + np.abs(np.log(high / other))


def fill(tracks: list[Track]) -> dict[int, list[np.ndarray]]:
    """Boxes of each frame: those of the tracks, on straight lines between their looks, smoothed."""
    people: dict[int, list[np.ndarray]] = {}
    for track in tracks:
        seen, boxes = np.array([*track.looks]), np.array([look[:4] for look in track.looks.values()])
        every = np.arange(seen[0], seen[-1] + 1)
        path = smooth(np.stack([np.interp(every, seen, boxes[:, side]) for side in range(4)], axis=1))
        for frame, box in zip(every, path):
            people.setdefault(int(frame), []).append(box)
    return people


def smooth(path: np.ndarray) -> np.ndarray:
    """The mean of each box and its neighbours in time. What moves evenly stays as it is, at the ends too."""
    around = np.pad(path, ((SMOOTH, SMOOTH), (0, 0)), mode="reflect", reflect_type="odd")
    return np.lib.stride_tricks.sliding_window_view(around, 2 * SMOOTH + 1, axis=0).mean(axis=-1)
