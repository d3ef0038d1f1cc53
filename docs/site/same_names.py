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
    "comm::received": "fmpl_received",
    "request::wait": "fmpl_isend_wait fmpl_irecv_wait fmpl_isend_any_wait fmpl_irecv_any_wait fmpl_mcast_wait fmpl_mcast_irecv_wait"
    " fmpl_ibarrier_wait fmpl_ibcast_wait fmpl_iallreduce_wait fmpl_ireduce_wait fmpl_igather_wait fmpl_iallgather_wait"
    " fmpl_iscatter_wait fmpl_ialltoall_wait fmpl_coll_wait",
    "request::test": "fmpl_isend_test fmpl_irecv_test fmpl_isend_any_test fmpl_irecv_any_test fmpl_mcast_test fmpl_mcast_irecv_test"
    " fmpl_ibarrier_test fmpl_ibcast_test fmpl_iallreduce_test fmpl_ireduce_test fmpl_igather_test fmpl_iallgather_test"
    " fmpl_iscatter_test fmpl_ialltoall_test fmpl_coll_test",
    "request::cancel": "fmpl_irecv_cancel fmpl_irecv_any_cancel fmpl_mcast_irecv_cancel",
    "scope::wait_all": "fmpl_waitall",
    "scope::wait_any": "fmpl_waitany",
    "scope::wait_some": "fmpl_waitsome",
    "scope::test_all": "fmpl_testall",
    "pending_loan::wait": "fmpl_irecv_loan_wait fmpl_irecv_loan_any_wait",
    "pending_loan::test": "fmpl_irecv_loan_test fmpl_irecv_loan_any_test",
    "comm::alltoallv": "fmpl_alltoallv",
    "comm::reduce": "fmpl_func_register",
    "comm::set_send_buffer": "fmpl_comm_sendbuf_set",
    "job::set_send_buffer": "fmpl_sendbuf_set",
    "initialized": "fmpl_initialized",
    "abort": "fmpl_abort",
    "wtime": "fmpl_wtime",
    "version": "fmpl_version",
    "counter": "fmpl_counter",
    "id_create": "fmpl_id_create",
    "init_id": "fmpl_init_id",
    "init_with": "fmpl_init_with",
    "make_grid": "fmpl_cart_create",
    "grid::coordinates": "fmpl_cart_coords",
    "grid::rank_at": "fmpl_cart_rank",
    "grid::shift": "fmpl_cart_shift",
    "grid::neighbour_allgather": "fmpl_neighbour_allgather",
    "grid::neighbour_alltoall": "fmpl_neighbour_alltoall",
    "allocate": "fmpl_alloc",
    "buffer": "fmpl_free",
    "take_loan": "fmpl_loan",
    "loan": "fmpl_loan_return",
    "comm::share": "fmpl_shared_alloc",
    "shared_window::part": "fmpl_shared_query",
    "shared_window::free": "fmpl_shared_free",
    "error": "fmpl_strerror fmpl_last_error acp_errno acp_last_error",
    "global::open": "acp_init",
    "global::memory": "acp_finalize",
    "global::memory::rank": "acp_rank",
    "global::memory::size": "acp_procs",
    "global::memory::sync": "acp_sync",
    "global::memory::reset": "acp_reset",
    "global::abort": "acp_abort",
    "global::colours": "acp_colors",
    "global::pointer::colour": "acp_query_color",
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
    "Error": "fmpl_strerror fmpl_last_error acp_errno acp_last_error",
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
    "SharedWindow": "fmpl_shared_query",
    "SharedWindow.free": "fmpl_shared_free",
    "Loan.release": "fmpl_loan_return",
    "LoanRequest.wait": "fmpl_irecv_loan_wait fmpl_irecv_loan_any_wait",
    "LoanRequest.test": "fmpl_irecv_loan_test fmpl_irecv_loan_any_test",
    "Comm.grid": "fmpl_cart_create",
    "Comm.coordinates": "fmpl_cart_coords",
    "Comm.rank_at": "fmpl_cart_rank",
    "Comm.shift": "fmpl_cart_shift",
    "Request.received": "fmpl_received",
    "Request.wait": CPP_NAMES["request::wait"],
    "Request.test": CPP_NAMES["request::test"],
    "Request.cancel": CPP_NAMES["request::cancel"],
    "wait_all": "fmpl_waitall",
    "wait_any": "fmpl_waitany",
    "wait_some": "fmpl_waitsome",
    "test_all": "fmpl_testall",
    # With `apart=True`.
    **{f"Comm.{call}": f"fmpl_{call}_n" for call in "ibarrier ibcast ireduce iallreduce igather iallgather iscatter ialltoall".split()},
    "Job.global_memory": "acp_init",
    "Global.close": "acp_finalize",
    "Global.reset": "acp_reset",
    "Global.abort": "acp_abort",
    "Global.sync": "acp_sync",
    "Global.rank": "acp_rank",
    "Global.size": "acp_procs",
    "Global.starter": "acp_query_starter_ga",
    "Global.register": "acp_register_memory",
    "Registration.unregister": "acp_unregister_memory",
    "Registration.address": "acp_query_ga",
    "Global.rank_of": "acp_query_rank",
    "Global.colour_of": "acp_query_color",
    "Global.colours": "acp_colors",
    "Global.copy": "acp_copy",
    "Global.compare_swap": "acp_cas4 acp_cas8",
    "Global.swap": "acp_swap4 acp_swap8",
    "Global.fetch_add": "acp_add4 acp_add8",
    "Global.fetch_xor": "acp_xor4 acp_xor8",
    "Global.fetch_or": "acp_or4 acp_or8",
    "Global.fetch_and": "acp_and4 acp_and8",
    "Operation.wait": "acp_complete",
    "Operation.test": "acp_inquire",
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
