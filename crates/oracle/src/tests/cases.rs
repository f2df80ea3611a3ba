//! Cases worked out by hand.

use miserly_core::{EventOrder, Host, Kind, Machine, Resources, Sharing, Span, Spread, Time};

use super::{BOTH, CONSERVATIVE, EASY, FCFS, Literal, check, jobs};
use crate::{NaiveOnHosts, NaiveOrder, NaivePolicy, equipartition, schedule, schedule_on_hosts};

const ALL: [NaivePolicy; 3] = [FCFS, EASY, CONSERVATIVE];

#[track_caller]
fn check_all(procs: u64, literals: &[Literal], starts: &[i64]) {
    for policy in ALL {
        for event_order in BOTH {
            check(policy, event_order, procs, literals, starts);
        }
    }
}

#[test]
fn nothing_to_do() {
    check_all(1, &[], &[]);
}

#[test]
fn the_slice_need_not_be_sorted() {
    check_all(1, &[(7, 1, 1, 1), (0, 8, 1, 8)], &[8, 0]);
}

#[test]
fn a_runtime_of_zero_makes_room_in_the_same_instant() {
    check_all(1, &[(0, 0, 1, 10), (0, 0, 1, 0), (0, 5, 1, 5), (0, 5, 1, 5)], &[0, 0, 0, 5]);
}

#[test]
fn only_fcfs_stops_at_the_head() {
    let literals = [(0, 10, 1, 10), (0, 5, 2, 5), (0, 10, 1, 10)];
    check(FCFS, EventOrder::Batched, 2, &literals, &[0, 10, 15]);
    check(EASY, EventOrder::Batched, 2, &literals, &[0, 10, 0]);
    check(CONSERVATIVE, EventOrder::Batched, 2, &literals, &[0, 10, 0]);
}

#[test]
fn equal_shares() {
    // The allocations: 8; 7 and 1; 4, 1 and 3; 4 and 4; 8.
    let three = jobs(&[(0, 8, 8, 8), (2, 4, 1, 4), (4, 3, 6, 3)]);
    let ends = [10_750_000, 6_000_000, 9_000_000].map(Time::from_ticks);
    assert_eq!(equipartition(8, &three, None), ends);
    // The allocations: 8; 4 and 4. At 3 job 1 is long: 7 and 1. At 4 job 2 is long too: 4 and 4; 8.
    let two = jobs(&[(0, 4, 8, 4), (1, 4, 8, 4)]);
    let ends = [6_250_000, 8_000_000].map(Time::from_ticks);
    assert_eq!(equipartition(8, &two, Span::from_secs(3)), ends);
}

#[test]
fn extra_nodes_are_consumed() {
    // At 10 the head leaves 1 of 5 processors: C may have it, but then D may not.
    let literals = [(0, 10, 3, 10), (0, 10, 4, 10), (0, 99, 1, 99), (0, 99, 1, 99)];
    check(EASY, EventOrder::Batched, 5, &literals, &[0, 10, 0, 20]);
    check(CONSERVATIVE, EventOrder::Batched, 5, &literals, &[0, 10, 0, 20]);
}

#[test]
fn easy_does_not_promise_to_the_second_in_the_queue() {
    // B waits for A. D delays C, which conservative backfilling does not allow.
    let literals = [(0, 10, 3, 10), (0, 10, 3, 10), (0, 10, 3, 10), (0, 25, 1, 25), (0, 25, 1, 25)];
    check(EASY, EventOrder::Batched, 4, &literals, &[0, 10, 20, 0, 25]);
    let wide = [(0, 10, 3, 10), (0, 10, 3, 10), (0, 10, 4, 10), (0, 25, 1, 25)];
    check(EASY, EventOrder::Batched, 4, &wide, &[0, 10, 25, 0]);
    check(CONSERVATIVE, EventOrder::Batched, 4, &wide, &[0, 10, 20, 30]);
}

#[test]
fn backfill_order_differs_from_queue_order() {
    let literals = [(0, 10, 1, 10), (0, 10, 2, 10), (0, 10, 1, 10), (0, 5, 1, 5)];
    let sjbf = NaivePolicy::Easy { order: NaiveOrder::ARRIVAL, backfill: NaiveOrder::SHORTEST, hold: false };
    check(EASY, EventOrder::Batched, 2, &literals, &[0, 10, 0, 20]);
    check(sjbf, EventOrder::Batched, 2, &literals, &[0, 10, 20, 0]);
}

#[test]
fn a_batch_sorts_what_a_sequence_cannot() {
    let literals = [(0, 100, 1, 100), (0, 5, 1, 5)];
    for policy in [
        NaivePolicy::Fcfs { order: NaiveOrder::SHORTEST },
        NaivePolicy::Easy { order: NaiveOrder::SHORTEST, backfill: NaiveOrder::SHORTEST, hold: false },
    ] {
        check(policy, EventOrder::Batched, 1, &literals, &[5, 0]);
        check(policy, EventOrder::Sequential, 1, &literals, &[0, 100]);
    }
}

#[test]
fn a_sequence_reserves_before_it_compresses() {
    // A ends early at 10, when C arrives.
    let literals = [(0, 10, 1, 20), (1, 30, 1, 30), (10, 5, 1, 5)];
    let shortest = NaivePolicy::Conservative { order: NaiveOrder::SHORTEST };
    check(shortest, EventOrder::Batched, 1, &literals, &[0, 10, 40]);
    check(shortest, EventOrder::Sequential, 1, &literals, &[0, 15, 10]);
}

#[test]
fn a_sequence_counts_a_job_that_ends_on_time_as_gone() {
    // At 10 B and C are reported before the end of A, and B starts at once.
    let literals = [(0, 10, 2, 10), (10, 5, 1, 5), (10, 5, 2, 5)];
    check_all(2, &literals, &[0, 10, 15]);
    // A ends early, so its end is unknown at the submission of B.
    let early = [(0, 10, 1, 20), (10, 9, 1, 9), (10, 5, 1, 5)];
    let shortest = NaivePolicy::Fcfs { order: NaiveOrder::SHORTEST };
    check(shortest, EventOrder::Sequential, 1, &early, &[0, 15, 10]);
    let on_time = [(0, 10, 1, 10), (10, 9, 1, 9), (10, 5, 1, 5)];
    check(shortest, EventOrder::Sequential, 1, &on_time, &[0, 10, 19]);
}

#[test]
fn compression_goes_in_order() {
    let literals = [(0, 5, 1, 10), (1, 20, 1, 20), (2, 5, 1, 5)];
    let shortest = NaivePolicy::Conservative { order: NaiveOrder::SHORTEST };
    for event_order in BOTH {
        check(CONSERVATIVE, event_order, 1, &literals, &[0, 5, 25]);
        check(shortest, event_order, 1, &literals, &[0, 10, 5]);
    }
}

#[test]
fn an_early_end_pulls_everybody_forward() {
    check_all(2, &[(0, 3, 2, 10), (1, 4, 2, 10), (2, 6, 2, 10)], &[0, 3, 7]);
}

#[test]
fn an_overdue_job_is_waited_for() {
    check_all(2, &[(0, 20, 2, 10), (1, 5, 2, 5)], &[0, 20]);
    check_all(2, &[(0, 20, 1, 10), (1, 5, 2, 5), (15, 1, 1, 1)], &[0, 20, 25]);
    // Both jobs become overdue at once.
    check_all(2, &[(0, 20, 1, 10), (0, 22, 1, 10), (1, 5, 2, 5), (23, 1, 1, 1)], &[0, 0, 22, 27]);
}

#[test]
fn an_overdue_job_leaves_a_tick_to_backfill() {
    // A plan made at 15 expects A to end one tick later: just enough for C.
    let literals = [(0, 20, 1, 10), (1, 5, 2, 5), (15, 0, 1, 0)];
    for event_order in BOTH {
        check(EASY, event_order, 2, &literals, &[0, 20, 15]);
        check(CONSERVATIVE, event_order, 2, &literals, &[0, 20, 15]);
    }
}

#[test]
fn a_conservative_job_reserved_behind_an_overdue_one_waits_its_turn() {
    // C (one processor) would fit beside the overdue A at 10. It stays behind B until A ends at 30.
    let literals = [(0, 30, 1, 10), (1, 5, 2, 5), (2, 50, 1, 50)];
    for event_order in BOTH {
        check(EASY, event_order, 2, &literals, &[0, 30, 35]);
        check(CONSERVATIVE, event_order, 2, &literals, &[0, 30, 35]);
    }
}

#[test]
fn an_estimate_of_zero_is_planned_as_a_tick() {
    // A is overdue after one tick. In the next case, C fits in the tick that is planned for A.
    let literals = [(0, 1, 1, 0), (0, 1, 1, 0)];
    check_all(1, &literals, &[0, 1]);
    let two = schedule(2, &jobs(&[(0, 7, 1, 7), (0, 0, 2, 0), (0, 0, 1, 0)]), EASY, EventOrder::Batched);
    assert_eq!(two, [Time::ZERO, Time::ZERO + Span::from_secs(7).unwrap(), Time::ZERO]);
}

#[test]
#[should_panic(expected = "wider than the machine")]
fn too_wide() {
    check_all(1, &[(0, 1, 2, 1)], &[0]);
}

#[test]
fn a_head_that_is_held_stays_the_head() {
    // B has its shadow time when the shorter C arrives.
    let literals = [(0, 10, 2, 10), (1, 10, 2, 10), (2, 5, 2, 5)];
    let order = NaiveOrder::SHORTEST;
    for event_order in BOTH {
        for (hold, starts) in [(false, [0, 15, 10]), (true, [0, 10, 20])] {
            let easy = NaivePolicy::Easy { order, backfill: order, hold };
            check(easy, event_order, 2, &literals, &starts);
        }
    }
}

#[test]
fn without_guarantees_a_shorter_job_comes_first() {
    let literals = [(0, 10, 1, 10), (1, 20, 1, 20), (2, 5, 1, 5)];
    let order = NaiveOrder::SHORTEST;
    for event_order in BOTH {
        check(NaivePolicy::Conservative { order }, event_order, 1, &literals, &[0, 10, 30]);
        check(NaivePolicy::NoGuarantee { order }, event_order, 1, &literals, &[0, 15, 10]);
    }
}

#[test]
fn without_guarantees_every_place_before_is_respected() {
    // D would delay C, which EASY allows.
    let literals = [(0, 10, 3, 10), (0, 10, 3, 10), (0, 10, 4, 10), (0, 25, 1, 25)];
    for event_order in BOTH {
        check(
            NaivePolicy::NoGuarantee { order: NaiveOrder::ARRIVAL },
            event_order,
            4,
            &literals,
            &[0, 10, 20, 30],
        );
    }
}

#[test]
fn a_shorter_job_comes_first_as_far_as_the_guarantee_goes() {
    // At 1 B gets a reservation for 10, after 9 s. Twice that gives the deadline 19, so C may
    // precede it at 10. C gets 30.
    let literals = [(0, 10, 1, 10), (1, 20, 1, 20), (2, 5, 1, 5)];
    let order = NaiveOrder::SHORTEST;
    for event_order in BOTH {
        for (guarantee, starts) in [(1, [0, 10, 30]), (2, [0, 15, 10])] {
            check(NaivePolicy::Sorted { order, guarantee }, event_order, 1, &literals, &starts);
        }
    }
}

#[test]
fn a_job_past_its_bound_goes_to_the_head() {
    // B's bound is 10 with one interval of 9 s, and 19 with two. C precedes it at 10 only with two. D arrives at 14
    // and precedes B with three, whose bound is 28.
    let literals = [(0, 10, 1, 10), (1, 20, 1, 20), (2, 5, 1, 5), (14, 5, 1, 5)];
    let order = NaiveOrder::SHORTEST;
    for event_order in BOTH {
        for (guarantee, starts) in [(1, [0, 10, 30, 35]), (2, [0, 20, 10, 15]), (3, [0, 20, 10, 15])] {
            check(NaivePolicy::LateAtHead { order, guarantee }, event_order, 1, &literals, &starts);
        }
    }
    // The bound is no guarantee: with one interval, B has to wait for C, which began before the bound.
    let literals = [(0, 10, 2, 10), (1, 10, 2, 10), (2, 15, 1, 15), (2, 9, 1, 9)];
    for event_order in BOTH {
        check(NaivePolicy::LateAtHead { order, guarantee: 1 }, event_order, 2, &literals, &[0, 10, 20, 20]);
    }
}

/// Two hosts, with 4 and 2 processors and 10 and 20 of memory.
fn two_hosts() -> Machine {
    let host = |name: &str, cpus, memory| {
        let capacity = Resources::cpus(cpus).with(Kind::Memory, memory);
        Host { name: name.into(), capacity }
    };
    Machine::new(vec![host("a", 4, 10), host("b", 2, 20)])
}

/// Checks the memory request, the start and the placement of each job.
#[track_caller]
fn check_on_hosts(
    machine: &Machine,
    policy: &str,
    literals: &[Literal],
    memory: &[u64],
    expected: &[(i64, &[(usize, u64)])],
) {
    let mut jobs = jobs(literals);
    for (job, &memory) in jobs.iter_mut().zip(memory) {
        job.request.demand = job.request.demand.with(Kind::Memory, memory);
    }
    let policy = NaiveOnHosts::written(policy, 0).unwrap();
    for event_order in BOTH {
        let starts = schedule_on_hosts(machine, &jobs, policy, event_order);
        let starts: Vec<_> = starts.iter().map(|start| (start.at.secs(), &start.on[..])).collect();
        assert_eq!(starts, expected, "{policy:?}, {event_order}");
    }
}

#[test]
fn a_job_goes_to_the_fullest_host_that_has_room() {
    // B needs more memory than b has left. C fits b best except for its processors. D waits for a.
    let literals = [(0, 10, 1, 10), (1, 10, 1, 10), (2, 10, 2, 10), (3, 5, 2, 5)];
    let expected: [(i64, &[_]); 4] = [(0, &[(1, 1)]), (1, &[(0, 1)]), (2, &[(0, 2)]), (10, &[(1, 2)])];
    check_on_hosts(&two_hosts(), "fcfs", &literals, &[12, 9, 0, 0], &expected);
}

#[test]
fn a_reservation_is_for_one_host() {
    // B has a reservation on a from 10 on. C would delay it there, but not on b. D ends before it.
    // E fits only behind it.
    let literals = [(0, 10, 3, 10), (1, 10, 4, 10), (2, 50, 1, 50), (3, 7, 1, 7), (4, 20, 2, 20)];
    let expected: [(i64, &[_]); 5] =
        [(0, &[(0, 3)]), (10, &[(0, 4)]), (2, &[(1, 1)]), (3, &[(0, 1)]), (20, &[(0, 2)])];
    for policy in ["easy", "conservative", "conservative(keep_reservations=false)", "fcfs-backfill(depth=2)"]
    {
        check_on_hosts(&two_hosts(), policy, &literals, &[0; 5], &expected);
    }
}

#[test]
fn a_job_over_several_hosts_takes_the_emptiest_first() {
    // Two kB for each of five processors: all of a, and one processor of b. B has the other one.
    let literals = [(0, 10, 5, 10), (1, 10, 1, 10)];
    let any = two_hosts().with_spread(Spread::Any);
    check_on_hosts(&any, "easy", &literals, &[10, 10], &[(0, &[(0, 4), (1, 1)]), (1, &[(1, 1)])]);
    // The first job holds all of both hosts. B waits for an idle host and gets the smaller one.
    let whole = any.with_sharing(Sharing::Whole);
    check_on_hosts(&whole, "easy", &literals, &[10, 10], &[(0, &[(0, 4), (1, 2)]), (10, &[(1, 2)])]);
}

#[test]
fn who_was_bypassed_comes_first() {
    // B waits for the memory of A. C is wider, so it sorts behind B, and starts. That moves B
    // before D, which is narrower.
    let literals = [(0, 10, 1, 10), (1, 10, 2, 10), (2, 10, 3, 10), (3, 10, 1, 10)];
    let order = "easy(order='2 * bypassed - procs')";
    let expected: [(i64, &[_]); 4] = [(0, &[(1, 1)]), (10, &[(1, 2)]), (2, &[(0, 3)]), (20, &[(1, 1)])];
    check_on_hosts(&two_hosts(), order, &literals, &[20, 20, 0, 20], &expected);
}
