#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:10:00
# The usual way: Slurm starts the ranks.
#
#     sbatch --nodes=4 --ntasks-per-node=32 srun.sh ./app ARGUMENTS
#
# MPI=pmix, pmi2 or none (a plain srun, which needs munge) says how the ranks find each other; `srun --mpi=list` which of
# them there are.
set -eu
[ $# -gt 0 ] || { echo "which program?" >&2; exit 2; }

# The network is chosen by itself: InfiniBand, RoCE, else libfabric's TCP. To name one for all:
# export FMPL_NETWORK='ofi:tcp;ofi_rxm'
# Registered memory is locked memory.
ulimit -l unlimited 2>/dev/null || echo "locked memory: $(ulimit -l) KiB; RDMA may need more" >&2

exec srun --mpi="${MPI:-pmix}" --kill-on-bad-exit=1 "$@"
