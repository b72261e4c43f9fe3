// Parquet files open as tables, some rows at a time: the file itself is never loaded.

import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import {
  ABCWidgetFactory,
  type DocumentRegistry,
  DocumentWidget,
  type IDocumentWidget,
  TextModelFactory
} from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import { ITranslator } from '@jupyterlab/translation';
import { spreadsheetIcon } from '@jupyterlab/ui-components';

import { readRows } from './server';
import { TableView } from './view';
import { tableLabels } from './words';

const FILE_TYPE = 'parquet';
const FACTORY = 'data-scientist-portal:table';
const MODEL = 'data-scientist-portal:unread';

/** Of a file whose content is not asked for. */
class UnreadModelFactory extends TextModelFactory {
  override get name(): string {
    return MODEL;
  }

  override get fileFormat(): Contents.FileFormat {
    return null;
  }
}

class TableFactory extends ABCWidgetFactory<DocumentWidget<TableView>> {
  constructor(
    options: DocumentRegistry.IWidgetFactoryOptions<DocumentWidget<TableView>>,
    private _make: (path: () => string) => TableView
  ) {
    super(options);
  }

  protected override createNewWidget(context: DocumentRegistry.Context): DocumentWidget<TableView> {
    // A file may be renamed while it is open.
    const content = this._make(() => context.path);
    void context.ready.then(() => content.showRows(0));
    context.fileChanged.connect(() => content.refresh());
    const widget = new DocumentWidget({ content, context });
    widget.title.icon = spreadsheetIcon;
    return widget;
  }
}

/** Tables, in JupyterLab. */
export const tables: JupyterFrontEndPlugin<void> = {
  id: 'data-scientist-portal:tables',
  description: 'Opens Parquet files as tables.',
  autoStart: true,
  requires: [ITranslator],
  optional: [ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator,
    restorer: ILayoutRestorer | null
  ): void => {
    const texts = translator.load('data_scientist_portal');
    const labels = tableLabels(texts);
    const { contents, serverSettings } = app.serviceManager;
    const { docRegistry } = app;
    docRegistry.addModelFactory(new UnreadModelFactory());
    docRegistry.addFileType({
      name: FILE_TYPE,
      displayName: labels.fileType,
      extensions: ['.parquet'],
      mimeTypes: ['application/vnd.apache.parquet'],
      icon: spreadsheetIcon,
      contentType: 'file',
      fileFormat: null
    });
    const factory = new TableFactory(
      {
        name: FACTORY,
        label: labels.factory,
        modelName: MODEL,
        fileTypes: [FILE_TYPE],
        defaultFor: [FILE_TYPE],
        readOnly: true,
        translator
      },
      path =>
        new TableView(first => readRows(serverSettings, contents.localPath(path()), first), texts)
    );
    docRegistry.addWidgetFactory(factory);

    // A page that is loaded again has its tables again.
    const tracker = new WidgetTracker<IDocumentWidget<TableView>>({ namespace: FACTORY });
    factory.widgetCreated.connect((_, widget) => {
      void tracker.add(widget);
      widget.context.pathChanged.connect(() => void tracker.save(widget));
    });
    void restorer?.restore(tracker, {
      command: 'docmanager:open',
      args: widget => ({ path: widget.context.path, factory: FACTORY }),
      name: widget => widget.context.path
    });
  }
};
