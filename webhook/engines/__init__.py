"""PURE. What a container runs, and how a server that plans the card's memory is told its share."""
