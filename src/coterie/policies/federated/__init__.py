"""Policies whose users are on several servers, with messages between them counted."""
