"""What a request can run into, each with its status and the name of its kind."""

from groupwise.errors import GroupwiseError


class ServiceError(GroupwiseError):
    """Something that a request is answered with: a problem document (RFC 9457)."""

    status = 500
    kind = "internal"
    title = "The service failed"
    retry_after: int | None = None
    """Seconds after which to try again."""


class MalformedError(ServiceError):
    """A request that cannot be read."""

    status, kind, title = 400, "malformed", "The request cannot be read"


class UnauthorisedError(ServiceError):
    """No token, or none that is known."""

    status, kind, title = 401, "unauthorised", "A token is needed"


class ForbiddenError(ServiceError):
    """A token that is not for this."""

    status, kind, title = 403, "forbidden", "The token is not for this"


class UnknownError(ServiceError):
    """There is no such model, ticket or page."""

    status, kind, title = 404, "unknown", "There is no such thing"


class MethodError(ServiceError):
    """A page that is there, asked for in another way."""

    status, kind, title = 405, "method", "The method is not for this page"


class SlowError(ServiceError):
    """A request that does not come to its end."""

    status, kind, title = 408, "slow", "The request takes too long to arrive"


class ConflictError(ServiceError):
    """What was said before says otherwise."""

    status, kind, title = 409, "conflict", "It was said otherwise before"


class TooLongError(ServiceError):
    """A body or a batch beyond what is taken."""

    status, kind, title = 413, "too-long", "The request is too long"


class MediaError(ServiceError):
    """A body of another kind."""

    status, kind, title = 415, "media-type", "The body is of another kind"


class InvalidError(ServiceError):
    """A request that can be read, and cannot be carried out: the model refuses the row or label."""

    status, kind, title = 422, "invalid", "The model refuses it"


class BusyError(ServiceError):
    """More at once than there is room for."""

    status, kind, title, retry_after = 503, "busy", "Too much at once", 1


class UnavailableError(ServiceError):
    """The service starts or ends, or its store is out of reach."""

    status, kind, title, retry_after = 503, "unavailable", "Not now", 1


class StaleError(ServiceError):
    """Another process writes the model."""

    status, kind, title = 503, "elsewhere", "Another process writes this model"
    model = 0
    """The number of the model in its store."""


class FullError(ServiceError):
    """What was asked for could not be made durable, and did not happen."""

    status, kind, title, retry_after = 507, "no-room", "It could not be written", 2


class StoreError(ServiceError):
    """A store that cannot be opened, read or written; what it holds does not fit together."""
