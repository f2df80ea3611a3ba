//! Lists of jobs, in pages.

use miserly_api::model::Filter;
use miserly_engine::{DaemonReply, DaemonRequest};

use super::life::{Life, job};

/// Returns the numbers in a list.
fn listed(life: &mut Life, filter: Filter) -> Vec<i64> {
    match life.ask(60, DaemonRequest::Jobs(filter)).unwrap() {
        DaemonReply::Jobs(jobs) => jobs.into_iter().map(|job| job.number).collect(),
        other => panic!("{other:?}"),
    }
}

/// Jobs 1 to 8, of which 1, 3 and 5 have ended.
fn eight() -> Life {
    let mut life = Life::of_policy("easy", 8, 8);
    for _ in 0..8 {
        life.submit(1, job(1, 100));
    }
    for number in [1, 3, 5] {
        life.end(2, number);
    }
    life
}

#[test]
fn a_limit_is_one_of_all_jobs() {
    let mut life = eight();
    let mut check = |all: bool, limit: u32, expect: &[i64]| {
        let filter = Filter { all, limit: Some(limit), ..Filter::default() };
        assert_eq!(listed(&mut life, filter), expect, "{all} {limit}");
    };
    check(false, 2, &[2, 4]);
    check(false, 100, &[2, 4, 6, 7, 8]);
    check(false, 0, &[]);
    check(true, 2, &[2, 4]);
    check(true, 7, &[2, 3, 4, 5, 6, 7, 8]);
    check(true, 8, &[1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn pages_have_every_job_once() {
    let mut life = eight();
    for all in [false, true] {
        let mut found = vec![];
        let page = |after| Filter { all, limit: Some(3), after, ..Filter::default() };
        let mut next = listed(&mut life, page(Some(0)));
        while let Some(last) = next.last().copied() {
            assert!(next.len() <= 3);
            found.extend(next);
            next = listed(&mut life, page(Some(last)));
        }
        let expect: &[i64] = if all { &[1, 2, 3, 4, 5, 6, 7, 8] } else { &[2, 4, 6, 7, 8] };
        assert_eq!(found, expect);
    }
}

#[test]
fn pages_heed_the_other_filters() {
    let mut life = eight();
    let of_user = |uid| Filter { all: true, uid: Some(uid), after: Some(2), ..Filter::default() };
    assert_eq!(listed(&mut life, of_user(0)), [3, 4, 5, 6, 7, 8]);
    assert!(listed(&mut life, of_user(7)).is_empty());
    let of_array = Filter { all: true, array: Some(3), after: Some(0), ..Filter::default() };
    assert_eq!(listed(&mut life, of_array), [3]);
}
