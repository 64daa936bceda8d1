"""`python -m dynid_ros`: as `dynid`."""

from dynid_ros.cli import main

if __name__ == "__main__":
    main()
