"""The exit statuses of the command line."""

FINE = 0
NO = 1  # the answer is no: a claim does not follow, a proof was asked for and not found
WRONG = 2  # the call or the input is wrong
INTERRUPTED = 130  # what a shell says of a program that SIGINT ended
UNREAD = 141  # what a shell says of a program that SIGPIPE ended
