"""The engine of the service: policies in memory, and the events that change them."""
