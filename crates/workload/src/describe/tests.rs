use super::*;

const LOG: &str = "\
; Computer: Toy
; MaxProcs: 10
1   0  5  30  1 -1 100  1  60 -1  1 1 -1 -1 2 -1 -1 -1
2 100 -1 100  4 -1  -1  4 600 50  1 2 -1 -1 2 -1 -1 -1
3 100  0   0 -1 -1  -1  8 300 50  5 1 -1 -1 2 -1 -1 -1
no job
4 400 10 200  3 -1  -1 -1 150 -1 -1 1 -1 -1 1 -1 -1 -1
5 300 -1  -1 -1 -1  -1 -1  -1 -1  0 3 -1 -1 1 -1 -1 -1
";

fn described() -> Description {
    let trace = Trace::memory("toy", LOG.into());
    describe(&trace, None, ProcsField::Allocated).unwrap()
}

#[test]
fn the_log_as_a_whole() {
    let log = described();
    assert_eq!((log.jobs, log.malformed, log.procs), (5, 1, Some(Procs::new(10))));
    assert_eq!(log.computer.as_deref(), Some("Toy"));
    assert_eq!(log.span, Some(LogSpan { first_submit: 0, last_submit: 400, last_end: 610 }));
    assert_eq!(log.work, 30 + 400 + 600);
    assert_eq!(log.load(), Some(1030.0 / 4000.0));
}

#[test]
fn sizes_and_runtimes() {
    let log = described();
    let sizes = log.sizes.spread.unwrap();
    assert_eq!((sizes.min, sizes.median, sizes.max), (1, 3, 8));
    assert_eq!(log.sizes.serial, Proportion { count: 1, of: 4 });
    assert_eq!(log.sizes.powers_of_two, Proportion { count: 3, of: 4 });
    let runtimes = log.runtimes.spread.unwrap();
    assert_eq!((runtimes.count, runtimes.median, runtimes.p95), (4, 30, 200));
    assert_eq!(log.runtimes.under_a_minute, Proportion { count: 2, of: 4 });
}

#[test]
fn estimates_and_their_quality() {
    let estimates = described().estimates;
    assert_eq!(estimates.known, Proportion { count: 4, of: 5 });
    assert_eq!(estimates.ran_past, Proportion { count: 1, of: 4 });
    assert_eq!(estimates.round, Proportion { count: 2, of: 4 });
    // 150/200, 60/30, 600/100, 300/1: the second of four values, and the fourth (3.2 rounded up).
    assert_eq!((estimates.median_factor, estimates.p80_factor), (Some(2.0), Some(300.0)));
}

#[test]
fn who_and_when_and_what_is_missing() {
    let log = described();
    let top: Vec<_> = log.users.top.iter().map(|user| (user.value, user.share.count)).collect();
    assert_eq!(top, [(1, 3), (2, 1), (3, 1)]);
    assert_eq!((log.queues.distinct, log.partitions.distinct), (2, 0));
    assert_eq!(log.arrivals.clock, LogClock::SinceStart);
    assert_eq!(log.arrivals.by_hour[0], 5);
    assert_eq!(log.statuses, BTreeMap::from([(-1, 1), (0, 1), (1, 2), (5, 1)]));
    assert_eq!(log.requested_memory, Proportion { count: 2, of: 5 });
    assert_eq!(log.used_memory, Proportion { count: 1, of: 5 });
    let missing = |field: Field| log.missing[field as usize].1;
    assert_eq!((missing(Field::Submit), missing(Field::Wait), missing(Field::Partition)), (0, 2, 5));
}

#[test]
fn a_log_without_jobs_is_an_error() {
    let trace = Trace::memory("empty", b"; MaxProcs: 3\n".to_vec());
    let error = describe(&trace, None, ProcsField::Allocated).unwrap_err();
    assert!(error.to_string().starts_with("empty: no jobs found"), "{error}");
}

#[test]
fn extra_fields() {
    let log = "; MaxProcs: 10\n; Extra: account gpus other nodes\n\
               1 0 5 3600 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1 physics 0.5 x\n\
               2 9 5 7200 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1 zoology 2\n\
               3 9 5 -1 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1 zoology 16\n\
               4 9 5 60 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n";
    let log = describe(&Trace::memory("toy", log.into()), None, ProcsField::Allocated).unwrap();
    let share = |count| Proportion { count, of: 4 };
    let value = |text: &str, count| (text.to_owned(), share(count));
    let [nodes, gpus, account] = &log.extras[..] else { panic!("{:?}", log.extras) };
    assert_eq!((nodes.known, nodes.distinct, nodes.hours), (share(0), 0, Some(0.0)));
    assert_eq!((gpus.known, gpus.total, gpus.hours), (share(3), Some(18.5), Some(4.5)));
    assert_eq!(gpus.common, [value("0.5", 1), value("2", 1), value("16", 1)]);
    assert_eq!((account.known, account.distinct, account.total), (share(3), 2, None));
    assert_eq!(account.common, [value("zoology", 2), value("physics", 1)]);
}
