"""How messages travel among the NPUs of a collective: groups, the network, chunks, events."""
