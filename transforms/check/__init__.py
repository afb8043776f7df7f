"""The checker: says which rules of which provider a history breaks.

It shares the table of rules with the guards and nothing else, so that it can convict them: how
messages are read and how each rule is decided is written here anew, on plain JSON.
"""
