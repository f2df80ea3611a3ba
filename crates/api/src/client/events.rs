//! The client's end of a stream of events.

use std::ops::ControlFlow;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request};
use serde::de::DeserializeOwned;

use super::{Client, Reply, problem};
use crate::model::{DaemonEvent, ForecastsEvent, JobsEvent, SENDS_MAIL};

/// The longest time between two calls of the caller's function.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// A received piece of a stream; `None` at its end.
type Piece = Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>;

impl Client {
    /// Passes the events of the daemon to `on_event` until it breaks or the daemon ends the stream.
    ///
    /// The first event is a snapshot of all unfinished jobs. With `after`, the number of the last event that the caller
    /// knows, it is the next change, if the daemon still remembers that. `on_event` gets `None` after each second without an
    /// event, and whenever the daemon shows that it is alive.
    ///
    /// # Errors
    /// As [`Client::submit`]; [`ClientError::Gone`](super::ClientError::Gone) if the daemon goes away.
    pub fn events(
        &self,
        after: Option<i64>,
        on_event: impl FnMut(Option<DaemonEvent>) -> ControlFlow<()>,
    ) -> Reply<()> {
        self.stream(after, false, on_event)
    }

    /// Does the same as [`Client::events`], for a client that sends the mails of jobs. `submit` warns while there is none.
    ///
    /// # Errors
    /// As [`Client::events`].
    pub fn events_for_mail(
        &self,
        after: Option<i64>,
        on_event: impl FnMut(Option<DaemonEvent>) -> ControlFlow<()>,
    ) -> Reply<()> {
        self.stream(after, true, on_event)
    }

    fn stream(
        &self,
        after: Option<i64>,
        mails: bool,
        mut on_event: impl FnMut(Option<DaemonEvent>) -> ControlFlow<()>,
    ) -> Reply<()> {
        let request = Request::builder().method(Method::GET).uri("/v1/events").header("host", "miserly");
        let request = if mails { request.header(SENDS_MAIL, "yes") } else { request };
        let request = match after {
            Some(after) => request.header("last-event-id", after),
            None => request,
        };
        let request = request.body(Full::new(Bytes::new())).map_err(|error| self.unexpected(error))?;
        let mut body = self.runtime.block_on(self.open(request))?;
        let mut parser = Parser::default();
        // Outside of the runtime: the function may make requests.
        while let Some(events) = self.runtime.block_on(self.next_events(&mut body, &mut parser))? {
            if events.into_iter().any(|event| on_event(event).is_break()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the body of a stream that has begun.
    async fn open(&self, request: Request<Full<Bytes>>) -> Reply<Incoming> {
        let answer = self.limited(self.reply_within, self.begin(request)).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        let body = answer.into_body().collect().await.map_err(|error| self.gone(&error))?;
        Err(problem(status, &body.to_bytes()).unwrap_or_else(|reason| self.unexpected(reason)))
    }

    /// Returns the events that the next piece of a stream completes; `None` at the end of the stream.
    async fn next_events(&self, body: &mut Incoming, parser: &mut Parser) -> Reply<Option<Events>> {
        match next(body).await {
            None => Ok(Some(vec![None])),
            Some(None) => Ok(None),
            Some(Some(Err(error))) => Err(self.gone(&error)),
            Some(Some(Ok(frame))) => {
                let bytes = frame.into_data().unwrap_or_default();
                parser.take(&bytes).map(Some).map_err(|error| self.unexpected(error))
            }
        }
    }
}

/// Events, and `None` for signs of life.
type Events = Vec<Option<DaemonEvent>>;

/// Returns the next piece of a stream, or `None` if there is none for a while.
async fn next(body: &mut Incoming) -> Option<Piece> {
    tokio::time::timeout(AT_LEAST_EVERY, body.frame()).await.ok()
}

/// A parser of server-sent events, which may come in any pieces.
#[derive(Default)]
struct Parser {
    /// The received part of the line that has not ended.
    line: Vec<u8>,
    name: String,
    data: String,
}

impl Parser {
    /// Returns the events that these bytes complete, and `None` for a comment. Events of a later version are skipped.
    fn take(&mut self, mut bytes: &[u8]) -> serde_json::Result<Events> {
        let mut events = vec![];
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.line(String::from_utf8_lossy(&line).trim_end_matches('\r'), &mut events)?;
        }
        self.line.extend_from_slice(bytes);
        Ok(events)
    }

    /// Takes a whole line. Adds the event that it completes, or `None` for a comment.
    fn line(&mut self, line: &str, events: &mut Events) -> serde_json::Result<()> {
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            events.extend(event(&name, &data)?.map(Some));
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => events.push(None),
            "event" => value.clone_into(&mut self.name),
            // JSON on several lines is the same JSON.
            "data" => self.data.push_str(value),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the event of a name, with its data.
fn event(name: &str, data: &str) -> serde_json::Result<Option<DaemonEvent>> {
    fn read<T: DeserializeOwned>(
        data: &str,
        event: fn(T) -> DaemonEvent,
    ) -> serde_json::Result<Option<DaemonEvent>> {
        serde_json::from_str(data).map(event).map(Some)
    }
    match name {
        "snapshot" => read::<JobsEvent>(data, DaemonEvent::Snapshot),
        "change" => read::<JobsEvent>(data, DaemonEvent::Change),
        "forecasts" => read::<ForecastsEvent>(data, DaemonEvent::Forecasts),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": comment\n\nevent: snapshot\nid: 7\ndata: {\"journal\":7,\"jobs\":[]}\n\n\
        event: later\ndata: x\n\nevent: change\r\ndata: {\"journal\":9,\r\ndata: \"jobs\":[]}\r\n\r\n\
        event: forecasts\ndata:{\"forecasts\":[]}\n\n";

    fn expected() -> Vec<DaemonEvent> {
        let jobs = |journal| JobsEvent { journal, jobs: vec![], gone: vec![] };
        let forecasts = ForecastsEvent { forecasts: vec![] };
        vec![DaemonEvent::Snapshot(jobs(7)), DaemonEvent::Change(jobs(9)), DaemonEvent::Forecasts(forecasts)]
    }

    #[test]
    fn events_are_the_same_in_pieces_of_any_size() {
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            let pieces = STREAM.as_bytes().chunks(size);
            let events: Vec<_> = pieces.flat_map(|piece| parser.take(piece).unwrap()).collect();
            let with_comment: Vec<_> = [None].into_iter().chain(expected().into_iter().map(Some)).collect();
            assert_eq!(events, with_comment, "{size}");
        }
    }

    #[test]
    fn data_that_is_no_event_is_an_error() {
        assert!(Parser::default().take(b"event: change\ndata: {}\n\n").is_err());
    }
}
