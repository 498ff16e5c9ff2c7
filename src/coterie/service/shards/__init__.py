"""Many services as one: each shard is a whole service with a store of its own."""
