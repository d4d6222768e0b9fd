"""How a fake BMC takes a change of its power limit: as it should, or as some do.

    ok          takes it, if If-Match fits or is not there
    ignore      says that it took it
    clamp       takes another: 100 W less
    late        takes it after a while
    drop        takes it and hangs up without an answer
    async       202; the monitor says so twice, then 204, and then it is taken
    task        202; the task stands at its own place and is Running twice, then Completed
    forever     202 for ever
    gives_up    202, then the task ends in Exception
    complains   200 with a message that it did not
    refuse      400
    etag_weak   shows a weak tag, wants the strong one
    etag_needed 428 without If-Match
    etag_body   shows the tag in the document alone, and wants it
    etag_stale  412 once, and another tag from then on
    etag_any    412 for all but "*"
    read_only   405
    busy        503
"""
import copy
import time

MODES = ("ok", "ignore", "clamp", "late", "drop", "async", "task", "forever", "gives_up", "complains",
         "refuse", "etag_weak", "etag_needed", "etag_body", "etag_stale", "etag_any", "read_only", "busy")
MONITOR = "/redfish/v1/TaskService/TaskMonitors/41"
TASK = "/redfish/v1/TaskService/Tasks/41"
LATE_S = 1.5


def complaint(message, severity="Warning"):
    return [{"MessageId": f"Base.1.8.{message}", "Message": f"{message}: not like this", "Severity": severity}]


def error(message):
    return {"error": {"code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": complaint(message)}}


def merge(old, new):
    """What PATCH does: members of arrays by their place, {} for as it is."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in new.items():
            old[key] = merge(old.get(key), value)
        return old
    if isinstance(old, list) and isinstance(new, list):
        for n, value in enumerate(new[:len(old)]):
            old[n] = merge(old[n], value)
        return old
    return new


def set_points(document, change=lambda watts: watts):
    """Changes all limits in a document."""
    for key, value in (document.items() if isinstance(document, dict) else enumerate(document)):
        if isinstance(value, (dict, list)):
            set_points(value, change)
        elif key in ("SetPoint", "LimitInWatts", "ServerPwr.1.PowerCapValue") and value is not None:
            document[key] = change(value)


class Limits:
    def __init__(self, bmc, mode):
        self.bmc, self.mode = bmc, mode
        self.changes = []  # bodies of PATCH, as they came
        self.tags = []     # If-Match of each, None without
        self.waiting = None
        self.looks = 0
        self.late = None
        self.renewed = False

    # -- tags --

    def tag_of(self, document, digest):
        """(header or None, document) as GET shows them."""
        if self.mode == "etag_weak":
            return f'W/"{digest}"', document
        if self.mode == "etag_body":
            return None, {**document, "@odata.etag": f'"{digest}"'}
        if self.mode == "etag_stale" and self.renewed:
            return f'"{digest}-2"', document
        return f'"{digest}"', document

    def wanted_tag(self, shown, digest):
        return {"etag_weak": f'"{digest}"', "etag_body": f'"{digest}"', "etag_any": "*"}.get(self.mode, shown)

    def tag_refused(self, if_match, shown, digest):
        """A status, or None."""
        if self.mode == "etag_stale" and not self.renewed:
            self.renewed = True
            return 412
        if if_match is None:
            return 428 if self.mode.startswith("etag_") else None
        fits = if_match in (self.wanted_tag(shown, digest), "*")
        return None if fits else 412

    # -- changes --

    def patch(self, path, body, if_match, shown, digest):
        """(status, headers, document); None hangs up."""
        self.changes.append(body)
        self.tags.append(if_match)
        if self.mode == "read_only":
            return 405, {"Allow": "GET"}, error("OperationNotAllowed")
        if self.mode == "busy":
            return 503, {}, error("ServiceTemporarilyUnavailable")
        status = self.tag_refused(if_match, shown, digest)
        if status:
            return status, {}, error("PreconditionFailed")
        if self.mode == "refuse" or self.bmc.refuses(body):
            return 400, {}, error("PropertyValueNotInList")
        return self.take(path, body)

    def take(self, path, body):
        if self.mode == "ignore":
            return 200, {}, {}
        if self.mode == "complains":
            return 200, {}, {"@Message.ExtendedInfo": complaint("PropertyNotWritable")}
        if self.mode in ("async", "task", "forever", "gives_up"):
            self.waiting, self.looks = (path, body), 0
            if self.mode == "async":
                return 202, {"Location": MONITOR}, {}
            return 202, {"Location": self.bmc.url + TASK}, {"@odata.id": TASK, "TaskState": "New"}
        if self.mode == "late":
            self.late = (time.monotonic() + LATE_S, path, body)
            return 204, {}, {}
        if self.mode == "clamp":
            body = copy.deepcopy(body)
            set_points(body, lambda watts: watts - 100)
        self.bmc.change(path, body)
        return (204, {}, {}) if self.mode != "drop" else None

    def look(self):
        """Before a GET."""
        if self.late and time.monotonic() >= self.late[0]:
            self.bmc.change(*self.late[1:])
            self.late = None

    def follow(self, path):
        """(status, document) of a monitor or task, or None."""
        if path not in (MONITOR, TASK) or not self.waiting:
            return None
        self.looks += 1
        if self.mode == "forever" or self.looks < 3:
            return (202, {}) if path == MONITOR else (200, {"@odata.id": TASK, "TaskState": "Running"})
        if self.mode == "gives_up":
            return 200, {"@odata.id": TASK, "TaskState": "Exception", "Messages": complaint("InternalError")}
        self.bmc.change(*self.waiting)
        self.waiting = None
        return (204, {}) if path == MONITOR else (200, {"@odata.id": TASK, "TaskState": "Completed"})
