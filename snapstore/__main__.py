"""`python -m snapstore` is `snapstore`."""

from snapstore.cli.main import main

if __name__ == "__main__":
    main()
