/*
 * The same as pdgesv.f90, in C: solves A x = b on a 2-d grid and checks the residual.
 *
 *     cc pdgesv.c -o pdgesv -lscalapack-openmpi -llapack -lblas -lm
 *     fmpl run -n 4 --preload libfmpl_blacs.so -- ./pdgesv 500 32        (order, blocks; rows of the grid, if it shall not be square)
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ScaLAPACK has no header: C's names of the BLACS, Fortran's of the rest. */
void Cblacs_pinfo(int *me, int *procs);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_barrier(int context, const char *scope);
void Cblacs_gridexit(int context);
void Cblacs_abort(int context, int code);
void Cblacs_exit(int go_on);
double Cdwalltime00(void);
int numroc_(const int *n, const int *nb, const int *process, const int *first, const int *processes);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *rsrc, const int *csrc,
    const int *context, const int *lld, int *info);
void pdgesv_(const int *n, const int *nrhs, double *a, const int *ia, const int *ja, const int *desca, int *pivots, double *b,
    const int *ib, const int *jb, const int *descb, int *info);
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a,
    const int *ia, const int *ja, const int *desca, const double *b, const int *ib, const int *jb, const int *descb,
    const double *beta, double *c, const int *ic, const int *jc, const int *descc);
double pdlange_(const char *norm, const int *m, const int *n, const double *a, const int *ia, const int *ja, const int *desca,
    double *work);

static const int zero = 0, one = 1;

/* An element of a pseudo-random matrix, by its place in the whole of it. */
static double element(long i, long j) {
    unsigned long h = (unsigned long)i * 6364136223846793005UL + (unsigned long)j * 1442695040888963407UL + 1;
    h = (h ^ h >> 31) * 0x9e3779b97f4a7c15UL;
    return (double)(h >> 11) / 9007199254740992.0 - 0.5;
}

/* Where a local index is in the whole: blocks are dealt out in turn. */
static long whole(long local, int nb, int process, int processes) {
    return (local / nb * processes + process) * nb + local % nb;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 500, nb = argc > 2 ? atoi(argv[2]) : 32;
    int me, procs, context, rows = 1, columns, row, column, info, desc_a[9], desc_b[9];
    Cblacs_pinfo(&me, &procs);
    for (int r = 2; r * r <= procs; r++)
        if (procs % r == 0) rows = r;
    if (argc > 3 && procs % atoi(argv[3]) == 0) rows = atoi(argv[3]);
    columns = procs / rows;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);

    int m_here = numroc_(&n, &nb, &row, &zero, &rows), n_here = numroc_(&n, &nb, &column, &zero, &columns);
    int lld = m_here > 1 ? m_here : 1;
    size_t size = (size_t)lld * (n_here > 1 ? n_here : 1);
    double *a = calloc(size, sizeof *a), *factors = calloc(size + n, sizeof *a), *b = calloc(lld, sizeof *a), *x = calloc(lld, sizeof *a);
    int *pivots = calloc(lld + nb, sizeof *pivots);
    descinit_(desc_a, &n, &n, &nb, &nb, &zero, &zero, &context, &lld, &info);
    descinit_(desc_b, &n, &one, &nb, &nb, &zero, &zero, &context, &lld, &info);
    for (int j = 0; j < n_here; j++)
        for (int i = 0; i < m_here; i++) a[(size_t)j * lld + i] = element(whole(i, nb, row, rows), whole(j, nb, column, columns));
    for (int i = 0; i < m_here && column == 0; i++) b[i] = element(whole(i, nb, row, rows), -1);
    memcpy(factors, a, size * sizeof *a);
    memcpy(x, b, lld * sizeof *x);

    Cblacs_barrier(context, "All");
    double began = Cdwalltime00();
    pdgesv_(&n, &one, factors, &one, &one, desc_a, pivots, x, &one, &one, desc_b, &info);
    double took = Cdwalltime00() - began;
    if (info != 0) {
        fprintf(stderr, "pdgesv: info = %d\n", info);
        Cblacs_abort(context, 1);
    }

    const double minus = -1, plus = 1;
    double anorm = pdlange_("I", &n, &n, a, &one, &one, desc_a, factors), xnorm = pdlange_("I", &n, &one, x, &one, &one, desc_b, factors);
    pdgemm_("N", "N", &n, &one, &n, &minus, a, &one, &one, desc_a, x, &one, &one, desc_b, &plus, b, &one, &one, desc_b);
    double residual = pdlange_("I", &n, &one, b, &one, &one, desc_b, factors) / (anorm * xnorm * n * DBL_EPSILON);
    if (me == 0) printf("pdgesv: n %d, blocks of %d, grid %d x %d: %.6f s, residual %.2e\n", n, nb, rows, columns, took, residual);
    if (!(residual < 16)) Cblacs_abort(context, 1);
    free(a), free(factors), free(b), free(x), free(pivots);
    Cblacs_gridexit(context);
    Cblacs_exit(0);
    return 0;
}
