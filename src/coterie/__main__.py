"""`python -m coterie` is `coterie`."""

from coterie.cli import main

if __name__ == "__main__":
    main()
