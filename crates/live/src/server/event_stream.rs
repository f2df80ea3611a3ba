//! Streams of events: responses that last until one side ends them.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame};
use miserly_api::model::SENDS_MAIL;
use tokio::sync::watch;

use super::StreamRequest;
use super::seats::Away;

/// A source of the events of one stream, as text.
pub trait EventSource: Send + 'static {
    /// Waits for the next event. Returns `None` at the end of the stream.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Returns what the headers of a request say about the stream. A number that cannot be read counts as none.
pub(super) fn requested(headers: &HeaderMap) -> StreamRequest {
    let last = || headers.get("last-event-id")?.to_str().ok()?.trim().parse().ok();
    StreamRequest { after: last(), mails: headers.contains_key(SENDS_MAIL) }
}

/// Returns a response that passes on events until the source or the server ends.
pub(super) fn response(
    source: impl EventSource,
    streaming: Away,
    mut stopping: watch::Receiver<bool>,
) -> Response {
    let stopped = async move {
        // If there is no sender any more, the server has ended.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    };
    let body =
        EventBody { next: Some(Box::pin(next(source))), stopped: Box::pin(stopped), _streaming: streaming };
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONNECTION, "close"),
    ];
    (head, Body::new(body)).into_response()
}

/// Returns the next event with its source.
async fn next<S: EventSource>(mut source: S) -> Option<(Bytes, S)> {
    source.next().await.map(|event| (event, source))
}

type Next<S> = Pin<Box<dyn Future<Output = Option<(Bytes, S)>> + Send>>;

/// The body of a stream.
struct EventBody<S> {
    /// The next event; `None` after the last one.
    next: Option<Next<S>>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The connection needs no seat as long as the stream lasts.
    _streaming: Away,
}

impl<S: EventSource> HttpBody for EventBody<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(event) = &mut self.next else { return Poll::Ready(None) };
        let event = event.as_mut().poll(context);
        // An event that is ready is sent before the end.
        if event.is_pending() && self.stopped.as_mut().poll(context).is_ready() {
            self.next = None;
            return Poll::Ready(None);
        }
        let event = ready!(event);
        let (bytes, source) = event.unzip();
        self.next = source.map(|source| Box::pin(next(source)) as Next<S>);
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
