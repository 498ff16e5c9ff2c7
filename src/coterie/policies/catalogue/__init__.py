"""Catalogues of items: vectors that stay from decision to decision, and the search for the best of them."""
