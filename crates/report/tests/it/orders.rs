//! Orders that change as time goes by.

use insta::assert_snapshot;

use crate::chart::chart;

#[test]
fn largest_expansion_factor_first() {
    // All need the whole machine. (wait + estimate) / estimate of jobs 2, 3 and 4 is 3.25, 2 and
    // 1.5 at 10, so job 2 starts. At 14 job 3 has 2.5 and the shorter job 4 has 3.5: it has
    // overtaken job 3 in the queue.
    assert_snapshot!(chart(2, &[(0, 10, 2, 10), (1, 4, 2, 4), (2, 8, 2, 8), (9, 2, 2, 2)], "easy(order=lxf)"), @"
       1 |111111111122224433333333
       0 |111111111122224433333333
         +-----+----+----+----+---
          0         10        20
    job  procs  submit  estimate  start  end  reason     promised
      1      2       0        10      0   10  immediate         -
      2      2       1         4     10   14  reserved          -
      3      2       2         8     16   24  reserved          -
      4      2       9         2     14   16  reserved          -
    ");
}
