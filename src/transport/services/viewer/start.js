const server = new URL("..", document.currentScript.src).href.replace(/\/$/, "");

/** Shows the `x-codeSamples` of an operation above its responses, with the address of this server. */
const codeSamples = {
  wrapComponents: {
    responses: (Responses, { React }) => {
      const h = React.createElement;
      return (props) => {
        const { getComponent, specSelectors, path, method } = props;
        const [chosen, choose] = React.useState(0);
        const samples = specSelectors.specJson().getIn(["paths", path, method, "x-codeSamples"])?.toJS() ?? [];
        const tabs = samples.map(({ lang, label = lang }, index) => h("option", { key: lang, value: index }, label));
        const source = samples[chosen]?.source.replaceAll("http://127.0.0.1:4420", server);
        return h(
          React.Fragment,
          null,
          samples.length > 0 &&
            h(
              "div",
              { className: "responses-wrapper code-samples" },
              h(
                "div",
                { className: "opblock-section-header" },
                h("h4", null, "Code"),
                h(
                  "select",
                  { "aria-label": "Language", value: chosen, onChange: (event) => choose(Number(event.target.value)) },
                  tabs,
                ),
              ),
              h(
                "div",
                { className: "responses-inner" },
                h(getComponent("HighlightCode", true), { canCopy: true, language: "javascript" }, source),
              ),
            ),
          h(Responses, props),
        );
      };
    },
  },
};

// Without a validator the viewer does not send the document anywhere.
SwaggerUIBundle({
  url: `${server}/openapi.json`,
  dom_id: "#swagger-ui",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  plugins: [codeSamples],
  validatorUrl: null,
});
