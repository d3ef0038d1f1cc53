"""What `Job.counter` counts."""

import enum


class Counter(enum.IntEnum):
    """A counter of this process, for `Job.counter`: what the library has done so far, or has now."""

    SHM_PEERS = 0
    """Other ranks whose memory this process has mapped. Only with these can anything go through shared memory."""
    SHM_MESSAGES = 1
    """Indexed messages sent to other ranks through shared memory."""
    SHM_BYTES = 2
    """The bytes of the messages counted by SHM_MESSAGES."""
    RDMA_WRITES = 3
    """RDMA writes to ranks on other nodes, those that carry a record and those that carry a message's bytes."""
    RDMA_READS = 4
    """RDMA reads from ranks on other nodes."""
    RDMA_BYTES = 5
    """The bytes of these writes and reads."""
    RDMA_COPIED = 6
    """Bytes of messages that a processor has copied on their way to or from another node, landings apart."""
    RDMA_COMPLETIONS = 7
    """Completions of writes and reads that were taken."""
    RDMA_PAIRS = 8
    """Connections (RC queue pairs) with ranks on other nodes that this process has now."""
    RDMA_NODE_PAIRS = 9
    """Those that all ranks of this node have now."""
    RDMA_RETIRED = 10
    """Connections of this process that were given up so far, because others needed their place."""
    MULTICAST_PACKETS = 11
    """Packets sent to multicast groups, each to all members at once."""
    MULTICAST_AGAIN = 12
    """Of these packets the ones that some member did not get, and that this process sent to it alone."""
    MULTICAST_GROUPS = 13
    """Multicast groups that this process is in now."""
    RDMA_CONTEXTS = 14
    """Peers on other nodes with which this process has a context now, memory that they may write."""
    RDMA_NODE_CONTEXTS = 15
    """The contexts that all ranks of this node have now."""
    RDMA_PUT_AWAY = 16
    """Contexts of this process that were put away so far, because others needed their place."""
    GLOBAL_REFUSED = 17
    """Operations on global memory that were refused or have failed, with those that were to follow them."""
    LOANS = 18
    """Loans that were handed over (`Comm.send_loan`)."""
    LOAN_COPIED = 19
    """Bytes of messages that this process has copied into loans or out of them."""
    SLEEPS = 20
    """Waits that slept, each as often as it did."""
    SLEPT_NS = 21
    """Nanoseconds that waits have slept, of all threads together."""
    SPOOL_MOST = 22
    """Bytes of the spool that have ever been in use."""
    RECEIVED = 23
    """Indexed messages received."""
    QUEUED = 24
    """Short messages that have gone through the overflow queue, since the one before was not received yet."""
    RDMA_FORGOTTEN = 25
    """Peers on other nodes that this process has forgotten so far, since nothing was under way with them and others needed their context."""
    REGISTRATIONS = 26
    """Registrations of this program's memory that are kept now for messages to other nodes."""
    REGISTERED_BYTES = 27
    """The bytes of the registrations counted by REGISTRATIONS."""
    REGISTRATIONS_FOUND = 28
    """Times that a message to or from another node found its memory registered."""
    REGISTRATIONS_MADE = 29
    """Registrations that were made since none was found."""
    WAY_SHORT = 32
    """Indexed messages sent in a record of the pair, or in the overflow queue."""
    WAY_STORE = 33
    """Indexed messages sent stored by their sender into the posted buffer, which is memory that peers reach, or its own."""
    WAY_KERNEL = 34
    """Indexed messages sent copied by the kernel, for their sender."""
    WAY_TURN = 35
    """Indexed messages sent through alternating buffers."""
    WAY_RING = 36
    """Indexed messages sent through a ring."""
    WAY_SHARED = 37
    """Indexed messages sent copied by the kernel, for both sides in pieces."""
    WAY_PULLED = 38
    """Indexed messages sent copied by the kernel, for their receiver."""
    WAY_SPOOL = 39
    """Indexed messages sent through the spool."""
    WAY_LOAN = 40
    """Indexed messages sent handed over."""
    WAY_FAR_SHORT = 41
    """Indexed messages sent to other nodes, in a record of the pair, or in the overflow queue."""
    WAY_FAR_PUT = 42
    """Indexed messages sent to other nodes, put into the posted buffer by the device."""
    WAY_FAR_SPOOL = 43
    """Indexed messages sent to other nodes, fetched from the spool by their receiver."""
    BYTES = 32
    """Added to one of the counters WAY_*: the bytes of these messages."""
