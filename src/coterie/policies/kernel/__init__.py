"""What all families share: linear algebra, named arrays, the base of all learners, sets of users."""
