"""The timing experiment: all arms in one process, stepped in turns, so that whatever else the machine does hits all alike."""
