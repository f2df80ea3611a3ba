//! Routes and the OpenAPI document, built by the same calls. An undocumented route cannot be
//! served.
//!
//! `SchemaReferences` is the trait in which utoipa keeps the schemas of a route. Its own crate for
//! axum uses it, too.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{get, post};
use utoipa::__dev::SchemaReferences;
use utoipa::Path;
use utoipa::openapi::path::{HttpMethod, Paths};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};

/// A router and the document of its routes.
pub(super) struct Documented<S> {
    router: Router<S>,
    paths: Paths,
    components: ComponentsBuilder,
}

impl<S: Clone + Send + Sync + 'static> Documented<S> {
    pub(super) fn new() -> Documented<S> {
        Documented { router: Router::new(), paths: Paths::new(), components: ComponentsBuilder::new() }
    }

    /// Adds `handler` for the operation that `P` documents.
    pub(super) fn with<P: Path + SchemaReferences, T: 'static>(
        mut self,
        handler: impl Handler<T, S>,
    ) -> Self {
        let methods = P::methods();
        let route = if methods.contains(&HttpMethod::Post) { post(handler) } else { get(handler) };
        self.paths.add_path_operation(P::path(), methods, P::operation());
        let mut schemas = Vec::new();
        P::schemas(&mut schemas);
        self.components = self.components.schemas_from_iter(schemas);
        self.router = self.router.route(&P::path(), route);
        self
    }

    /// Returns the router and the document.
    pub(super) fn build(self) -> (Router<S>, OpenApi) {
        let info = InfoBuilder::new()
            .title("Miserly")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(
                "HTTP and JSON on a unix socket. The kernel identifies the caller at the other end.",
            ))
            .build();
        let document = OpenApiBuilder::new()
            .info(info)
            .paths(self.paths)
            .components(Some(self.components.build()))
            .build();
        (self.router, document)
    }
}
