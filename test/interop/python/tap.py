"""Prints TAP version 14 (testanything.org)."""


class Broken(Exception):
    """Ends a topic, because later steps depend on the failed one."""


class Report:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def topic(self, topic, body):
        def step(name, holds, otherwise=""):
            self.line(holds, f"{topic}: {name}", otherwise)
            if not holds:
                raise Broken

        try:
            body(step)
        except Broken:
            pass
        except Exception as error:
            self.line(False, topic, f"{type(error).__name__}: {error}")

    def line(self, holds, name, otherwise):
        self.count += 1
        if holds:
            print(f"ok {self.count} - {name}")
            return
        self.failed += 1
        comment = " ".join(str(otherwise).split())
        print(f"not ok {self.count} - {name}\n  # {comment}")

    def end(self):
        """Prints the plan and returns the exit status."""
        print(f"1..{self.count}")
        return min(self.failed, 1)
