/* The BLACS with 64-bit integers: sizes, results and integer matrices are long. */
#include <stdio.h>

void Cblacs_pinfo(long *me, long *all);
void Cblacs_get(long context, long what, long *value);
void Cblacs_gridinit(long *context, const char *order, long rows, long columns);
void Cblacs_gridinfo(long context, long *rows, long *columns, long *row, long *column);
void Cigsum2d(long context, const char *scope, const char *top, long m, long n, long *a, long lda, long row, long col);
void Cdgesd2d(long context, long m, long n, const double *a, long lda, long row, long col);
void Cdgerv2d(long context, long m, long n, double *a, long lda, long row, long col);
void Cigamx2d(long context, const char *scope, const char *top, long m, long n, long *a, long lda, long *ra, long *ca, long ldia, long row, long col);
void Cblacs_abort(long context, long code);
void Cblacs_exit(long go_on);

int main(void) {
    long me = -1, all = -1, context = -1, rows = -1, columns = -1, row = -1, column = -1, ra = -1, ca = -1;
    Cblacs_pinfo(&me, &all);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", 1, all);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    long sum = (me + 1) << 33, most = -((me + 1) << 40);
    Cigsum2d(context, "All", " ", 1, 1, &sum, 1, -1, -1);
    Cigamx2d(context, "All", " ", 1, 1, &most, 1, &ra, &ca, 1, -1, -1);
    double there[6] = {1, 2, 3, 4, 5, (double)me}, here[6] = {0};
    Cdgesd2d(context, 3, 2, there, 3, 0, (me + 1) % all);
    Cdgerv2d(context, 6, 1, here, 6, 0, (me + all - 1) % all);
    int well = rows == 1 && columns == all && row == 0 && column == me && sum == (all * (all + 1) / 2) << 33 && most == -(all << 40) && ra == 0 &&
               ca == all - 1 && here[4] == 5 && here[5] == (double)((me + all - 1) % all);
    if (!well) {
        fprintf(stderr, "process %ld: grid %ld x %ld at %ld, %ld; sum %ld, most %ld at %ld, %ld; %g\n", me, rows, columns, row, column, sum, most, ra, ca, here[5]);
        Cblacs_abort(context, 1);
    }
    Cblacs_exit(0);
    return 0;
}
