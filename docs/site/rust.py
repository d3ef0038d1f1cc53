"""Finds what a call of C is in Rust: the public function of the same name, or the one that the table below names.

Each is looked up in `src/comm`, so a name of the table that has gone stops the build.
"""

import re

# The calls whose Rust function has another name, or which a type stands for: memory is freed, and loans are given back, by being dropped.
OTHER_NAMES = {
    "SendRequest::wait": "fmpl_isend_wait fmpl_isend_any_wait",
    "SendRequest::test": "fmpl_isend_test fmpl_isend_any_test",
    "RecvRequest::wait": "fmpl_irecv_wait",
    "RecvRequest::test": "fmpl_irecv_test",
    "RecvRequest::cancel": "fmpl_irecv_cancel",
    "AnyRequest::wait": "fmpl_irecv_any_wait",
    "AnyRequest::test": "fmpl_irecv_any_test",
    "AnyRequest::cancel": "fmpl_irecv_any_cancel",
    "LoanRequest::wait": "fmpl_irecv_loan_wait",
    "LoanRequest::test": "fmpl_irecv_loan_test",
    "AnyLoanRequest::wait": "fmpl_irecv_loan_any_wait",
    "AnyLoanRequest::test": "fmpl_irecv_loan_any_test",
    "CollectiveRequest::wait": "fmpl_ibarrier_wait fmpl_ibcast_wait fmpl_iallreduce_wait fmpl_ireduce_wait fmpl_igather_wait"
    " fmpl_iallgather_wait fmpl_iscatter_wait fmpl_ialltoall_wait fmpl_coll_wait",
    "CollectiveRequest::test": "fmpl_ibarrier_test fmpl_ibcast_test fmpl_iallreduce_test fmpl_ireduce_test fmpl_igather_test"
    " fmpl_iallgather_test fmpl_iscatter_test fmpl_ialltoall_test fmpl_coll_test",
    "Scope::wait_any": "fmpl_waitany",
    "Scope::wait_some": "fmpl_waitsome",
    "Scope::test_all": "fmpl_testall",
    "McastRequest::wait": "fmpl_mcast_irecv_wait",
    "McastRequest::test": "fmpl_mcast_irecv_test",
    "McastRequest::cancel": "fmpl_mcast_irecv_cancel",
    "Comm::scope": "fmpl_waitall",
    "Received": "fmpl_received",
    "Buffer": "fmpl_free",
    "Lent": "fmpl_loan_return",
    "Reduce": "fmpl_func_register",
    "Error": "fmpl_strerror fmpl_last_error acp_errno acp_last_error",
    "Job::set_send_buffer": "fmpl_sendbuf_set",
    "Comm::set_send_buffer": "fmpl_comm_sendbuf_set",
    "Job::event": "fmpl_event_fd",
    "Buffer::new": "fmpl_alloc",
    "Id::create": "fmpl_id_create",
    "Job::create": "fmpl_comm_create",
    "Comm::duplicate": "fmpl_comm_dup",
    "Comm::group": "fmpl_comm_group_create",
    "Communicator::free": "fmpl_comm_free",
    "Comm::shared_window": "fmpl_shared_alloc",
    "SharedWindow::part": "fmpl_shared_query",
    "SharedWindow::free": "fmpl_shared_free",
    "Comm::recv_any": "fmpl_recv_any_from",
    "Comm::limit_any": "fmpl_recv_any_limit",
    "Comm::prepare_send": "fmpl_send_init",
    "Comm::prepare_recv": "fmpl_recv_init",
    "PreparedSend::start": "fmpl_send_start",
    "PreparedRecv::start": "fmpl_recv_start",
    "Comm::grid": "fmpl_cart_create",
    "Comm::coordinates": "fmpl_cart_coords",
    "Comm::rank_at": "fmpl_cart_rank",
    "Comm::shift": "fmpl_cart_shift",
    "Global::open": "acp_init",
    "Global::close": "acp_finalize",
    "Global::sync": "acp_sync",
    "Global::rank": "acp_rank",
    "Global::size": "acp_procs",
    "Global::starter": "acp_query_starter_ga",
    "Global::register": "acp_register_memory",
    "Global::unregister": "acp_unregister_memory",
    "Global::rank_of": "acp_query_rank",
    "Global::address_of": "acp_query_ga",
    "Global::local": "acp_query_address",
    "Global::colour_of": "acp_query_color",
    "Global::colours": "acp_colors",
    "Global::reset": "acp_reset",
    "Global::abort": "acp_abort",
    "Global::copy": "acp_copy",
    "Remote::compare_exchange": "acp_cas4 acp_cas8",
    "Remote::swap": "acp_swap4 acp_swap8",
    "Remote::fetch_add": "acp_add4 acp_add8",
    "Remote::fetch_xor": "acp_xor4 acp_xor8",
    "Remote::fetch_or": "acp_or4 acp_or8",
    "Remote::fetch_and": "acp_and4 acp_and8",
    "Handle::wait": "acp_complete",
    "Handle::is_over": "acp_inquire",
}
# The types of the predefined functions of reductions.
OPERATIONS = {
    "sum": "Sum", "prod": "Prod", "maxval": "MaxVal", "minval": "MinVal", "amax": "AbsMax", "amin": "AbsMin", "maxloc": "MaxLoc",
    "minloc": "MinLoc", "land": "Land", "lor": "Lor", "lxor": "Lxor", "band": "Band", "bor": "Bor", "bxor": "Bxor",
}  # fmt: skip
# Where a function of the same name is looked for; behind the types those that are of no type.
PLACES = ["Comm::", "Scope::", "Job::", ""]


class Forms:
    """The public functions of `src/comm`, by `Type::name`."""

    def __init__(self, src):
        exported = re.findall(r"^pub use (.*?);", (src / "lib.rs").read_text(), re.S | re.M)
        exported = {name for names in exported for name in re.findall(r"\w+", names)}
        self.all = {}
        for file in sorted((src / "comm").rglob("*.rs")):
            self.take(file.read_text().splitlines(), exported)
        for name in [*OTHER_NAMES, *OPERATIONS.values()]:
            if name not in self.all and name not in exported:
                raise ValueError(f"there is no {name} in src/comm, which docs/site/rust.py names")
        self.by_call = {call: name for name, calls in OTHER_NAMES.items() for call in calls.split()}

    def take(self, lines, exported):
        kind = ""
        for at, line in enumerate(lines):
            if found := re.match(r"impl(?:<.*?>)? (\w+)(?:<.*>)? \{$", line):
                kind = found[1]
            elif line == "}":
                kind = ""
            elif found := re.match(r"(    )?pub (?:unsafe )?fn (\w+)", line):
                member = bool(found[1])
                if member and kind in exported or not member and found[2] in exported:
                    name = f"{kind}::{found[2]}" if member else found[2]
                    self.all.setdefault(name, signature(lines, at, "    " if member else ""))

    def of(self, call):
        """The name and the signature of what a call is in Rust, or None."""
        name = self.by_call.get(call)
        for place in PLACES if not name and call.startswith("fmpl_") else []:
            plain = call.removeprefix("fmpl_")
            for candidate in (plain, plain.removeprefix("comm_")):
                name = name or (place + candidate if place + candidate in self.all else None)
        return (f"fmpl::{name}", self.all.get(name, "")) if name else None


def signature(lines, at, indent):
    """The head of the function that begins in this line, up to its brace."""
    head = [lines[at]]
    while not head[-1].endswith("{") and not (len(head) > 1 and head[-1].strip() == "where"):
        head.append(lines[at + len(head)])
    head[-1] = re.sub(r"\s*(\{|where)$", "", head[-1])
    return "\n".join(line.removeprefix(indent) for line in head).rstrip()
