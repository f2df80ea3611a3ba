//! The daemon's end of one stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::hub::Stream;
use crate::server::EventSource;

/// The events of one stream, in order.
#[derive(Debug)]
pub(crate) struct EventReader {
    stream: Stream,
    /// The events before those of the receiver.
    first: VecDeque<Bytes>,
    receiver: Receiver<Bytes>,
    /// Counts it among the streams of clients that send mails.
    _counted: Option<Counted>,
}

/// One of a number of things, which counts until it is dropped.
#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Counted {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EventReader {
    /// Returns the events after a number, or a snapshot and all events after it. Returns `None` if they cannot be read.
    pub(super) async fn begin(stream: Stream, after: Option<i64>) -> Option<EventReader> {
        let (first, receiver) = stream.begin(after).await?;
        Some(EventReader { stream, first: first.into(), receiver, _counted: None })
    }

    /// Returns the stream, which counts until it is dropped.
    pub(super) fn counted(self, counted: Counted) -> EventReader {
        EventReader { _counted: Some(counted), ..self }
    }

    /// Begins again with a snapshot.
    async fn begin_again(&mut self) -> Option<Bytes> {
        let (first, receiver) = self.stream.begin(None).await?;
        (self.first, self.receiver) = (first.into(), receiver);
        self.first.pop_front()
    }
}

impl EventSource for EventReader {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            // The client was too slow.
            Err(RecvError::Lagged(_)) => self.begin_again().await,
            Err(RecvError::Closed) => None,
        }
    }
}
