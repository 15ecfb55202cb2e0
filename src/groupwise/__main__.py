"""``python -m groupwise``, and what the script ``groupwise`` calls."""

import sys

from groupwise.extras import missing_from


def main() -> None:
    """Run the command line; without the packages it needs, say in one line what to install."""
    missing = missing_from("cli", "The command line")
    if missing:
        print(f"groupwise: {missing}", file=sys.stderr)
        raise SystemExit(2)  # as after any command that cannot be carried out
    from groupwise.cli import main as run

    run()


if __name__ == "__main__":
    main()
