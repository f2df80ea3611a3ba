//! Each route sends its request with the identity of its caller, and the client reads the reply.

use std::collections::BTreeMap;

use miserly_api::client::ClientError;
use miserly_api::model::{
    BeginStepRequest, ChangeRequest, EndStepRequest, Exit, Filter, JobChange, JobIds, JobSignal,
    Modification, ProblemCode, Selection, ShadowFilter, SignalRequest, StateName, Submission, TimeBound,
    WhatIf,
};
use miserly_engine::DaemonRequest;

use crate::samples;
use crate::server::Server;

fn submission() -> Submission {
    Submission {
        command: vec!["sleep".to_owned(), "1".to_owned()],
        directory: "/".into(),
        environment: BTreeMap::from([("NAME".to_owned(), "ä \"quoted\"\n".to_owned())]),
        cpus: 2,
        time: 60.0,
        begin: Some(samples::at(3)),
        request_id: Some("r".to_owned()),
        ..Submission::default()
    }
}

#[test]
fn each_route_is_a_question() {
    let server = Server::new();
    let client = server.client();
    let handed = |jobs: &[i64]| JobIds { jobs: jobs.to_vec() };
    let filter = Filter {
        all: true,
        uid: Some(7),
        queue: Some("a&b c".to_owned()),
        array: Some(-1),
        limit: Some(5),
        after: Some(3),
        details: true,
    };

    assert_eq!(client.submit(&submission()).unwrap().jobs, samples::accepted());
    assert_eq!(client.quote(&submission()).unwrap().windows, [Some(samples::window()), None]);
    let what_if = WhatIf { policy: Some("easy".to_owned()), ..WhatIf::default() };
    assert_eq!(client.what_if(&what_if).unwrap(), samples::what_if());
    let since = ShadowFilter { since: Some(samples::at(5)) };
    assert_eq!(client.shadow(&since).unwrap(), samples::shadow());
    assert_eq!(client.jobs(&filter).unwrap(), samples::jobs());
    assert_eq!(client.job(1).unwrap(), samples::jobs()[0]);
    assert_eq!(client.wait(1).unwrap(), samples::jobs()[0]);
    assert_eq!(client.cancel(3, true).unwrap(), handed(&[3]));
    let change = ChangeRequest {
        change: JobChange::Hold,
        select: Selection {
            jobs: vec!["10-20".parse().unwrap(), "1_60".parse().unwrap()],
            states: vec![StateName::Waiting],
            name: Some("a*".to_owned()),
            ..Selection::default()
        },
        move_promises: true,
    };
    assert_eq!(client.change_jobs(&change).unwrap(), samples::changed());
    assert_eq!(client.hold(4, false).unwrap(), handed(&[4]));
    assert_eq!(client.release(5).unwrap(), handed(&[5]));
    assert_eq!(client.requeue(6, false).unwrap(), handed(&[6]));
    assert_eq!(client.extend(7, 90.5).unwrap(), samples::jobs()[0]);
    let signal = SignalRequest { signal: JobSignal::Usr1, main: true };
    assert_eq!(client.signal(3, &signal).unwrap(), handed(&[3]));
    let begin = BeginStepRequest { name: "solve".to_owned(), tasks: 2, cpus: 4, limit: Some(60) };
    assert_eq!(client.begin_step(3, &begin).unwrap(), samples::step());
    let end = EndStepRequest { step: 1, exit: Exit::Code(2), by_time: true };
    assert_eq!(client.end_step(3, &end).unwrap(), samples::step());
    assert_eq!(client.resize(2, 6).unwrap(), handed(&[2]));
    assert_eq!(client.pause(4).unwrap(), handed(&[4]));
    assert_eq!(client.resume(5).unwrap(), handed(&[5]));
    let changes = Modification {
        remove: vec![TimeBound::Begin, TimeBound::StartWithin],
        start_within: Some(60.0),
        overrun_if_idle: Some(true),
        before: Some(2),
        ..Modification::default()
    };
    assert_eq!(client.modify(8, &changes, true).unwrap(), samples::moves());
    assert_eq!(client.preview(9, &JobChange::Extend(1.5)).unwrap(), samples::moves());
    assert_eq!(client.pools().unwrap(), samples::pools());
    assert_eq!(client.reservations().unwrap(), [samples::reservation()]);
    assert_eq!(client.reserve(&samples::reservation()).unwrap(), [samples::reservation()]);
    assert_eq!(client.remove_reservation("a b").unwrap(), [samples::reservation()]);
    assert_eq!(client.limits().unwrap(), samples::limits());
    assert_eq!(client.status().unwrap(), samples::status());
    assert_eq!(client.drain(true).unwrap(), handed(&[]));
    assert_eq!(client.hold_starts(true).unwrap(), handed(&[]));

    let asked = server.fake.asked();
    let questions: Vec<DaemonRequest> = asked.iter().map(|(_, question)| question.clone()).collect();
    let expected = vec![
        DaemonRequest::Submit(submission()),
        DaemonRequest::Quote(submission()),
        DaemonRequest::WhatIf(Box::new(what_if)),
        DaemonRequest::Shadow(since),
        DaemonRequest::Jobs(filter),
        DaemonRequest::Job(1),
        DaemonRequest::Wait(1),
        DaemonRequest::Cancel { job: 3, array: true },
        DaemonRequest::Change(Box::new(change)),
        DaemonRequest::Hold { job: 4, move_promises: false },
        DaemonRequest::Release(5),
        DaemonRequest::Requeue { job: 6, move_promises: false },
        DaemonRequest::Extend { job: 7, by: 90.5 },
        DaemonRequest::Signal { job: 3, signal },
        DaemonRequest::BeginStep { job: 3, step: begin },
        DaemonRequest::EndStep { job: 3, end },
        DaemonRequest::Resize { job: 2, cpus: 6 },
        DaemonRequest::Pause { job: 4, on: true },
        DaemonRequest::Pause { job: 5, on: false },
        DaemonRequest::Modify { job: 8, changes: Box::new(changes), move_promises: true },
        DaemonRequest::Preview { job: 9, change: Box::new(JobChange::Extend(1.5)) },
        DaemonRequest::Pools,
        DaemonRequest::Reservations,
        DaemonRequest::Reserve(Box::new(samples::reservation())),
        DaemonRequest::RemoveReservation("a b".to_owned()),
        DaemonRequest::Limits,
        DaemonRequest::Status,
        DaemonRequest::Drain(true),
        DaemonRequest::HoldStarts(true),
    ];
    assert_eq!(questions, expected);
    let uid = rustix::process::geteuid().as_raw();
    assert!(asked.iter().all(|(caller, _)| caller.uid == uid), "{asked:?}");
}

#[test]
fn what_is_left_out_of_a_body_has_its_default() {
    let server = Server::new();
    assert_eq!(server.request("POST", "/v1/jobs/3/cancel", "").status, 200);
    assert_eq!(server.request("POST", "/v1/jobs", r#"{"directory": "/", "time": 1}"#).status, 201);
    assert_eq!(server.request("GET", "/v1/jobs", "").status, 200);
    let questions: Vec<DaemonRequest> =
        server.fake.asked().into_iter().map(|(_, question)| question).collect();
    let submission =
        Submission { directory: "/".into(), time: 1.0, cpus: 1, umask: 0o077, ..Submission::default() };
    let expected = [
        DaemonRequest::Cancel { job: 3, array: false },
        DaemonRequest::Submit(submission),
        DaemonRequest::Jobs(Filter::default()),
    ];
    assert_eq!(questions, expected);
}

#[test]
fn whoever_waits_is_told_when_the_job_has_ended() {
    let server = Server::new();
    let (client, ended) = (server.client(), server.fake.ended.clone());
    let waiting = std::thread::spawn(move || client.wait(2));
    while server.fake.asked().is_empty() {
        std::thread::yield_now();
    }
    assert!(!waiting.is_finished());
    // The server replies to others meanwhile.
    server.client().status().unwrap();
    ended.notify_one();
    assert_eq!(waiting.join().unwrap().unwrap().number, 1);
}

#[test]
fn the_client_hands_on_the_reason_of_a_refusal() {
    let server = Server::new();
    let Err(ClientError::Refused(problem)) = server.client().job(422) else { panic!("not refused") };
    assert_eq!((problem.code, problem.job), (ProblemCode::Refused, Some(422)));
    assert_eq!(problem.to_string(), "no job 422");
}

#[test]
fn without_a_daemon_the_client_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let client = miserly_api::client::Client::new(folder.path().join("socket")).unwrap();
    let error = client.status().unwrap_err().to_string();
    assert!(error.contains("miserly daemon") && error.contains("MISERLY_SOCKET"), "{error}");
}

#[test]
fn a_daemon_that_goes_away_ends_the_waiting() {
    let mut server = Server::within(miserly_live::server::Limits {
        shutdown_grace: std::time::Duration::from_millis(50),
        ..Default::default()
    });
    let client = server.client();
    let waiting = std::thread::spawn(move || client.wait(2));
    while server.fake.asked().is_empty() {
        std::thread::yield_now();
    }
    server.stop();
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Gone { .. }), "{error}");
    assert!(!server.socket().exists());
}
