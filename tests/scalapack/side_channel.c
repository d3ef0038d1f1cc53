/*
 * Four of Debian's ScaLAPACK testers call MPI themselves: xFbtest and xCbtest send their own records beside the BLACS that they test,
 * xshseqr and xdhseqr read its clock. These ten functions are all that they call, over FMPL, with the handles of Open MPI's mpif.h, which
 * are compiled into the programs. Preloaded behind libfmpl_blacs.so, which brings fmpl_*.
 */
#include <fmpl.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int code, const char *what) {
    if (code == FMPL_SUCCESS) return;
    fprintf(stderr, "side channel: %s: %s\n", what, fmpl_last_error());
    fmpl_abort(1);
}

/* Bytes of an element of a datatype. */
static size_t bytes(int type) {
    switch (type) {
    case 1: return 1;          /* MPI_BYTE */
    case 7: case 13: return 4; /* MPI_INTEGER, MPI_REAL */
    case 17: case 18: return 8; /* MPI_DOUBLE_PRECISION, MPI_COMPLEX */
    case 22: return 16;        /* MPI_DOUBLE_COMPLEX */
    }
    fprintf(stderr, "side channel: datatype %d is not known\n", type);
    exit(1);
}

void mpi_init_(int *ier) { must(fmpl_init(NULL, NULL, 1), "mpi_init"), *ier = 0; }
void mpi_initialized_(int *flag, int *ier) { must(fmpl_initialized(flag), "mpi_initialized"), *ier = 0; }
void mpi_comm_dup_(const int *comm, int *copy, int *ier) { *copy = *comm, *ier = 0; }
void mpi_comm_rank_(const int *comm, int *rank, int *ier) {
    (void)comm;
    must(fmpl_comm_rank(FMPL_COMM_WORLD, rank), "mpi_comm_rank"), *ier = 0;
}
void mpi_comm_size_(const int *comm, int *size, int *ier) {
    (void)comm;
    must(fmpl_comm_size(FMPL_COMM_WORLD, size), "mpi_comm_size"), *ier = 0;
}
/* The testers name their source and receive in the order of sending, so tags need not be looked at. */
void mpi_send_(const void *buf, const int *n, const int *type, const int *dst, const int *tag, const int *comm, int *ier) {
    (void)tag, (void)comm;
    must(fmpl_send(buf, *n * bytes(*type), *dst, 0, FMPL_COMM_WORLD), "mpi_send"), *ier = 0;
}
void mpi_recv_(void *buf, const int *n, const int *type, const int *src, const int *tag, const int *comm, int *status, int *ier) {
    (void)tag, (void)comm, (void)status;
    must(fmpl_recv(buf, *n * bytes(*type), *src, 0, FMPL_COMM_WORLD), "mpi_recv"), *ier = 0;
}
void mpi_type_size_(const int *type, int *size, int *ier) { *size = (int)bytes(*type), *ier = 0; }
void mpi_abort_(const int *comm, const int *code, int *ier) { (void)comm, (void)ier, fmpl_abort(*code); }
double mpi_wtime_(void) { return fmpl_wtime(); }
