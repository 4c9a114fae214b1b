const server = new URL("..", document.currentScript.src).href.replace(/\/$/, "");

/** Shows the `x-codeSamples` of an operation above its responses, with the address of this server. */
const codeSamples = {
  wrapComponents: {
    // A long text scrolls, which the keyboard can only do where it can have the focus.
    HighlightCode:
      (HighlightCode, { React }) =>
      (props) => {
        const focusable = (element) => element?.querySelector("pre")?.setAttribute("tabindex", "0");
        return React.createElement("div", { ref: focusable }, React.createElement(HighlightCode, props));
      },
    responses: (Responses, { React }) => {
      const h = React.createElement;
      return (props) => {
        const { getComponent, specSelectors, path, method } = props;
        const [chosen, choose] = React.useState(0);
        const spec = specSelectors.specJson();
        const samples = spec.getIn(["paths", path, method, "x-codeSamples"]).toJS();
        const { lang: language, source } = samples[chosen];
        const options = samples.map(({ lang, label = lang }, index) => h("option", { key: lang, value: index }, label));
        const text = source.replaceAll(spec.getIn(["servers", 1, "url"]), server);
        return h(
          React.Fragment,
          null,
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
                options,
              ),
            ),
            h(
              "div",
              { className: "responses-inner" },
              h(
                getComponent("HighlightCode", true),
                { canCopy: true, language: language === "Shell" ? "bash" : "javascript" },
                text,
              ),
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
