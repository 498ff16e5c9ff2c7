"""The paper's figures and tables, declared as data and reproduced by one command."""
