#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:10:00
# Where Slurm has neither PMIx nor PMI-2, and no munge on the nodes: the ranks find each other at a port of rank 0, by a
# secret of the job.
#
#     sbatch --nodes=4 --ntasks-per-node=32 variables.sh ./app ARGUMENTS
set -eu
umask 077
[ $# -gt 0 ] || { echo "which program?" >&2; exit 2; }

# On a file system that all nodes see; the file is nobody else's, and goes with the job.
secret=$(mktemp "$PWD/secret.XXXXXX")
trap 'rm -f "$secret"' EXIT
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$secret"

# Where rank 0 runs, and a port there that depends on the job, so that two jobs on a node do not meet.
first=$(scontrol show node "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)" | grep -o 'NodeAddr=[^ ]*')
export FMPL_SECRET_FILE=$secret FMPL_ROOT=${first#NodeAddr=}:$((20000 + SLURM_JOB_ID % 10000))

srun --mpi=none --kill-on-bad-exit=1 "$@"
