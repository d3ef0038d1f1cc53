#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:10:00
# `fmpl run` takes the machines and the number of ranks from Slurm, and starts a daemon on each by srun: no ssh, no PMIx,
# no munge. It says which rank died of what, binds the ranks, and has --stats, --timeout, --tag-output.
#
#     sbatch --nodes=4 --ntasks-per-node=32 fmpl-run.sh ./app ARGUMENTS
set -eu
[ $# -gt 0 ] || { echo "which program?" >&2; exit 2; }

# The network is chosen by itself: InfiniBand, RoCE, else libfabric's TCP. To name one for all:
# export FMPL_NETWORK='ofi:tcp;ofi_rxm'

exec fmpl run --launch-agent "srun --overlap --unbuffered --nodes=1 --ntasks=1 --nodelist" -- "$@"
