"""The table of the training examples: 2,000 flights, and whether each was late."""

import csv
from pathlib import Path

import numpy as np

AIRPORTS = ["EWR", "JFK", "LGA"]
TRAINED = 1_600  # the other 400 are for testing


def table():
    """Features, scaled by public knowledge and never by the data, and labels: 1 if late."""
    path = Path(__file__).resolve().parents[1] / "docs" / "flights.csv"
    with path.open(newline="") as file:
        flights = list(csv.DictReader(file))
    numbers = [[float(row["hour"]) / 12 - 1, float(row["distance"]) / 2_500 - 1] for row in flights]
    places = [[row["origin"] == airport for airport in AIRPORTS] for row in flights]
    return np.hstack([numbers, places]).astype(np.float32), np.array(
        [row["late"] == "yes" for row in flights], int
    )


def report(predicted, labels):
    """Prints the accuracy on test rows, next to that of the more frequent label."""
    most = max(labels.mean(), 1 - labels.mean())
    print(
        f"{(predicted == labels).mean():.1%} of {len(labels)} flights are right; {most:.1%} have the same label"
    )
