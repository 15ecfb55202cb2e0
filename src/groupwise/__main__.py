"""``python -m groupwise``, and what the script ``groupwise`` calls."""

import sys

FURTHER = {"serve": "serve", "token": "serve", "reproduce": "paper"}
"""The extra that a command needs besides that of the command line."""


def main() -> None:
    """Run the command line; without the packages it needs, say in one line what to install."""
    try:
        from groupwise.extras import missing_from

        further = FURTHER.get(sys.argv[1]) if sys.argv[1:] else None
        extras = ("cli",) if further is None else ("cli", further)
        missing = missing_from(extras, "The command line")
        if missing:
            print(f"groupwise: {missing}", file=sys.stderr)
            raise SystemExit(2)  # as after any command that cannot be carried out
        from groupwise.cli import main as run
        from groupwise.kernels import compiling
    except KeyboardInterrupt:  # later, commands know what to say
        print("groupwise: interrupted.", file=sys.stderr)
        raise SystemExit(130) from None  # as shells have it: 128 + SIGINT
    with compiling():  # whatever the command, it is said when kernels are compiled
        run()


if __name__ == "__main__":
    main()
