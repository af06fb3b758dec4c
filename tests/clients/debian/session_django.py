"""A session through Django: migrations, queries, transactions, constraints, threads."""
import pathlib
import shutil
import sys
import threading

import django
from django.conf import settings

HERE = pathlib.Path(sys.argv[1]).parent
APP = HERE / "shop"


def make_app():
    (APP / "migrations").mkdir(parents=True)
    (APP / "__init__.py").write_text("")
    (APP / "migrations" / "__init__.py").write_text("")
    (APP / "models.py").write_text(
        "from django.db import models\n"
        "class Shelf(models.Model):\n"
        "    name = models.CharField(max_length=30, unique=True)\n"
        "class Item(models.Model):\n"
        "    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, related_name='items')\n"
        "    label = models.CharField(max_length=50, db_index=True)\n"
        "    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)\n"
        "    tags = models.JSONField(default=dict)\n"
        "    made = models.DateTimeField(null=True)\n"
        "    class Meta:\n"
        "        constraints = [models.CheckConstraint(check=models.Q(price__gte=0), name='p')]\n")


def main():
    make_app()
    sys.path.insert(0, str(HERE))
    settings.configure(
        INSTALLED_APPS=["shop"], USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1],
                               "OPTIONS": {"timeout": 20}}})
    django.setup()
    from django.core.management import call_command
    from django.db import IntegrityError, connection, models, transaction
    call_command("makemigrations", "shop", verbosity=0)
    call_command("migrate", verbosity=0)
    from shop.models import Item, Shelf
    first = Shelf.objects.create(name="first")
    second = Shelf.objects.create(name="second")
    Item.objects.bulk_create([Item(shelf=first, label=f"i{n}", price=n, tags={"n": n})
                              for n in range(20)])
    print(Item.objects.filter(price__gt=5, label__startswith="i1").count())
    print(list(Shelf.objects.annotate(n=models.Count("items"), total=models.Sum("items__price"))
               .order_by("name").values_list("name", "n", "total")))
    print(list(Item.objects.filter(tags__n__gte=18).values_list("label", flat=True)))
    print(Item.objects.filter(label__iregex="^I1[0-3]$").count())
    Item.objects.filter(price__lt=3).update(shelf=second, price=models.F("price") + 100)
    print(list(second.items.order_by("id").values_list("label", "price")))
    for make in (lambda: Shelf.objects.create(name="first"),
                 lambda: Item.objects.create(shelf=first, label="x", price=-1)):
        try:
            with transaction.atomic():
                make()
        except IntegrityError as error:
            print("IntegrityError", error)
    try:
        with transaction.atomic():
            Shelf.objects.create(name="gone")
            raise RuntimeError("back")
    except RuntimeError:
        print(Shelf.objects.filter(name="gone").exists())
    item, made = Item.objects.update_or_create(label="i5", defaults={"price": 55})
    print(made, item.price)
    print(first.delete()[0], Item.objects.count())
    with connection.schema_editor() as editor:
        field = models.IntegerField(default=7)
        field.set_attributes_from_name("extra")
        editor.add_field(Item, field)
    with connection.cursor() as cursor:
        cursor.execute("SELECT extra FROM shop_item LIMIT 1")
        print(cursor.fetchone())
    print(sorted(connection.introspection.table_names()))

    def work(number):
        for i in range(5):
            Shelf.objects.create(name=f"w{number}-{i}")
        connection.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(Shelf.objects.filter(name__startswith="w").count())
    shutil.rmtree(APP)


main()
