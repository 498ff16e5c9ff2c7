"""The service over HTTP: routes, keys, metrics and the page."""
