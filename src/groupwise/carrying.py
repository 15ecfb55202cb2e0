"""A model from one place to another: what tasks need of it, and what they bring back."""

from groupwise import segmented
from groupwise.features import Encoder
from groupwise.pipeline import Reader
from groupwise.registry import Registry
from groupwise.replay_frames import FrameReplays
from groupwise.segments import Carried, Parts


class Carrying(FrameReplays):
    """Models that segments of a stream carry on, wherever these run."""

    prior: dict[str, float]

    @property
    def makes_features(self) -> bool:
        """Are there features made of rows before, so that rows can only be read in order?"""
        return self._derived is not None

    def hand_out(self, segment: int, aggregators_at: str) -> tuple[Parts, Carried, Reader]:
        """Configuration, what was learned, and what is known of rows, as tasks need them."""
        segmented.checked(segment, aggregators_at, self._reduction)
        with self.lock:
            known = self._encoder, self._registry, self._derived, self._logged
            parts = self._parts._replace(
                offset=segmented.offset_of(self._reduction),
                afresh=aggregators_at == segmented.SEGMENT,
            )
            carried = segmented.carried_from(self._reduction, len(self._registry))
            return parts, carried, Reader(self.loss, self.groups, *known)

    def take_over(self, carried: Carried, reader: Reader, rows: int, learned: int) -> None:
        """Go on from where segments have come to, with so many rows, and those learned from."""
        encoder = Encoder.from_dict(reader.encoder.to_dict(), self.groups)
        registry = Registry(self.groups, self.prior)
        registry.restore(reader.registry.to_dict())
        features = len(encoder.names)
        reduction = segmented.after(self._parts, self._reduction, carried, features)
        with self.lock:
            if self._derived is not None and reader.derived is not None:
                self._derived.load(*reader.derived.save())
            self._encoder, self._registry, self._reduction = encoder, registry, reduction
            self._count(rows, learned)
