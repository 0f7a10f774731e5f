"""Script for spark-submit in the image: Spark wants a file, the package has the application."""

import sys

from lockkeeper_analytics.pods.application import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
