"""Finds what a call of C is in C++ and in Python: there a member has the name of the call, or that of the tables below.

C++ is read from `include/fmpl.hpp` and `include/fmpl/*.hpp`, Python from the package's stub. A name of a table that has gone stops the build.
"""

import ast
import re

MEMBER = re.compile(r"    (template <.*> )?([\w:<>,* ]+ [*&]?)(\w+)\((.*?)\)( const)?( noexcept)?(?=;| \{| :|$)")


def plain(call):
    """The name that a member would have. That of `fmpl_free` is another's: there memory is freed when it is let go."""
    return re.sub("^fmpl_(comm_)?", "", call) if call != "fmpl_free" else ""


# The calls that another name stands for in C++. Memory is freed, and loans go back, when what has them ends.
CPP_NAMES = {
    "init": "fmpl_init",
    "communicator": "fmpl_comm_free",
    "job::create": "fmpl_comm_create",
    "comm::duplicate": "fmpl_comm_dup",
    "comm::group": "fmpl_comm_group_create",
    "comm::recv_any": "fmpl_recv_any_from",
    "request::wait": "fmpl_isend_wait fmpl_irecv_wait fmpl_isend_any_wait fmpl_irecv_any_wait fmpl_ibarrier_wait fmpl_ibcast_wait"
    " fmpl_iallreduce_wait fmpl_received",
    "request::test": "fmpl_isend_test fmpl_irecv_test fmpl_isend_any_test fmpl_irecv_any_test fmpl_ibarrier_test fmpl_ibcast_test"
    " fmpl_iallreduce_test",
    "request::cancel": "fmpl_irecv_cancel fmpl_irecv_any_cancel",
    "scope::wait_all": "fmpl_waitall",
    "scope::wait_any": "fmpl_waitany",
    "scope::test_all": "fmpl_testall",
    "allocate": "fmpl_alloc",
    "buffer": "fmpl_free",
    "take_loan": "fmpl_loan",
    "loan": "fmpl_loan_return",
    "shared_window": "fmpl_shared_alloc",
    "shared_window::part": "fmpl_shared_query",
    "shared_window::free": "fmpl_shared_free",
    "error": "fmpl_strerror fmpl_last_error acp_errno acp_last_error",
    "global::open": "acp_init",
    "global::memory": "acp_finalize",
    "global::memory::rank": "acp_rank",
    "global::memory::size": "acp_procs",
    "global::memory::sync": "acp_sync",
    "global::memory::starter": "acp_query_starter_ga",
    "global::share": "acp_register_memory acp_query_ga",
    "global::registration": "acp_unregister_memory",
    "global::pointer::rank": "acp_query_rank",
    "global::pointer::local": "acp_query_address",
    "global::copy": "acp_copy",
    "global::compare_and_swap": "acp_cas4 acp_cas8",
    "global::swap": "acp_swap4 acp_swap8",
    "global::add": "acp_add4 acp_add8",
    "global::bit_xor": "acp_xor4 acp_xor8",
    "global::bit_or": "acp_or4 acp_or8",
    "global::bit_and": "acp_and4 acp_and8",
    "global::operation::wait": "acp_complete",
    "global::operation::done": "acp_inquire",
}

# The same of Python.
PYTHON_NAMES = {
    "create_id": "fmpl_id_create",
    "Error": "fmpl_strerror fmpl_last_error",
    "__version__": "fmpl_version",
    "Job.set_send_buffer": "fmpl_sendbuf_set",
    "Comm.set_send_buffer": "fmpl_comm_sendbuf_set",
    "Comm.group": "fmpl_comm_group_create",
    "Comm.name": "fmpl_comm_set_name",
    "Comm.recv_any": "fmpl_recv_any_from",
    "Comm.send": "fmpl_send_block",
    "Comm.recv": "fmpl_recv_block",
    "Comm.isend": "fmpl_isend_block",
    "Comm.irecv": "fmpl_irecv_block",
    "Comm.shared_window": "fmpl_shared_alloc",
    "SharedWindow.__getitem__": "fmpl_shared_query",
    "SharedWindow.free": "fmpl_shared_free",
    "Loan.release": "fmpl_loan_return",
    "Request.received": "fmpl_received",
    "Request.wait": CPP_NAMES["request::wait"].replace(" fmpl_received", ""),
    "Request.test": CPP_NAMES["request::test"],
    "Request.cancel": CPP_NAMES["request::cancel"],
    "wait_all": "fmpl_waitall",
    "wait_any": "fmpl_waitany",
}


def by_call(names):
    return {call: name for name, calls in names.items() for call in calls.split()}


class Cpp:
    """The public members of `fmpl::comm`, `fmpl::scope` and `fmpl::job`, and what the table names."""

    CLASSES = ("comm", "scope", "job")

    def __init__(self, include):
        self.members = {}
        self.by_call = by_call(CPP_NAMES)
        texts = {}
        for file in [include / "fmpl.hpp", *sorted((include / "fmpl").glob("*.hpp"))]:
            text = texts[file.stem] = file.read_text()
            kind, public, before = "", False, ""
            for line in text.splitlines():
                if found := re.match(r"class (\w+) \{$", line):
                    kind, public = found[1], False
                elif line.strip() in ("public:", "private:"):
                    public = line.strip() == "public:"
                elif line.startswith("}"):
                    kind = ""
                elif (found := MEMBER.match(line)) and public and kind in self.CLASSES:
                    template = before.strip() + "\n" if re.fullmatch(r" {4}template <.*>", before) else ""
                    self.members.setdefault((kind, found[3]), template + found[0].strip())
                before = line
        for name in CPP_NAMES:
            where = texts["global"] if name.startswith("global::") else "\n".join(texts.values())
            if not re.search(rf"\b{name.split('::')[-1]}\b", where):
                raise ValueError(f"there is no {name} in include/fmpl, which docs/site/same_names.py names")

    def of(self, call):
        if name := self.by_call.get(call):
            return f"fmpl::{name}", ""
        for kind in self.CLASSES:
            if code := self.members.get((kind, plain(call))):
                return f"fmpl::{kind}::{plain(call)}", code
        return None


class Python:
    """The functions of the package, and the methods of `Comm` and `Job`."""

    def __init__(self, stub):
        self.functions = {}
        self.by_call = by_call(PYTHON_NAMES)
        text = stub.read_text()
        for name in PYTHON_NAMES:
            if not re.search(rf"\b{name.split('.')[-1]}\b", text):
                raise ValueError(f"there is no {name} in the stub, which docs/site/same_names.py names")
        for node in ast.parse(text).body:
            where = node.name + "." if isinstance(node, ast.ClassDef) and node.name in ("Comm", "Job") else ""
            for function in node.body if where else [node]:
                if isinstance(function, ast.FunctionDef):
                    code = ast.get_source_segment(text, function).removesuffix(": ...")
                    code = "\n".join(line.removeprefix("    ") for line in code.splitlines()) if where else code
                    prefix = "@property\n" if function.decorator_list else ""
                    self.functions.setdefault((where, function.name), prefix + code)

    def of(self, call):
        if name := self.by_call.get(call):
            return f"fmpl.{name}", ""
        for where in ("Comm.", "Job.", ""):
            if code := self.functions.get((where, plain(call))):
                return f"fmpl.{where}{plain(call)}", code
        return None
