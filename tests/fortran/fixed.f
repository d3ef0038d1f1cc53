C     The include file, in fixed form, with the INTEGER(8) names.
C
C         fmpl run -n 2 ./fixed
      program fixed
      implicit none
      include 'fmplf.h'
      integer rank, nranks, next, last, ier, i, length, index, flag
      integer*8 length8, address, run, runs, stride
      integer a(1000), b(1000)
      character*100 text

      call fmpl_init(FMPL_NULL, FMPL_NULL, 8, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
      call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
      next = mod(rank + 1, nranks)
      last = mod(rank + nranks - 1, nranks)
      do 10 i = 1, 1000
        a(i) = 10000 * rank + i
        b(i) = -1
   10 continue
      call fmpl_irecv(b, 4000, last, 3, FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      call fmpl_send(a, 4000, next, 3, FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      call fmpl_irecv_wait(last, 3, FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      do 20 i = 1, 1000
        if (b(i) .ne. 10000 * last + i) goto 910
   20 continue
      length8 = 400
      call fmpl_irecv8(b, length8, last, 4, FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      run = 4
      runs = 100
      stride = 40
      call fmpl_send_block(a, run, runs, stride, next, 4,
     &  FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      call fmpl_irecv_wait(last, 4, FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      do 30 i = 1, 100
        if (b(i) .ne. 10000 * last + 10 * i - 9) goto 910
   30 continue
      call fmpl_received(last, 4, FMPL_COMM_WORLD, length, index, ier)
      if (ier .ne. FMPL_SUCCESS .or. length .ne. 400) goto 910
      length8 = 100000
      call fmpl_alloc8(length8, address, ier)
      if (ier .ne. FMPL_SUCCESS .or. address .eq. 0) goto 900
      call fmpl_free(address, ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      call fmpl_send(a, 4, nranks, 0, FMPL_COMM_WORLD, ier)
      if (ier .ne. FMPL_ERR_RANK) goto 910
      call fmpl_initialized(flag, ier)
      if (flag .ne. 1 .or. fmpl_wtime() .lt. 0d0) goto 910
      call fmpl_finalize(ier)
      if (ier .ne. FMPL_SUCCESS) goto 900
      stop
  900 call fmpl_last_error(text, i)
      print *, 'error ', ier, text
      stop 1
  910 print *, 'wrong result on rank ', rank
      stop 2
      end
